"""Weighing atoms, and splitting one that alone is over the ceiling.

The ladder: sentences (or lines), then within a piece still too long the best place near its end: line end, phrase
punctuation, blank, grapheme, code point. What must stay true: pieces are in order, cover every non-blank character
of the atom and end at last, whatever the tokenizer says; each level of the ladder counts a text once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import regex

from ragd.chunkers.document import Atom
from ragd.chunkers.sentences import sentence_spans
from ragd.chunkers.tokens import TokenCounter

CHARS_PER_TOKEN = 16
"""A token stands for at most this many non-blank characters: some tokenizers make one "unknown" of any long word,
and a chunk of a megabyte would be the result."""

SENTENCE_COST, BLANK_LINE_COST, LINE_COST, PHRASE_COST, WORD_COST, LETTER_COST = 0.35, 0.3, 0.6, 1.0, 2.0, 3.0

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
_PHRASE_END = re.compile(r"[,;:.!?)\]}—–][\"'”’]?(?=\s)|[。！？；：、，．…]")
_BLANK = re.compile(r"\s+")
_GRAPHEME = regex.compile(r"\X")
_LONGEST_GRAPHEME = 64
_CHARS_PER_ROOM_TOKEN = 2
"""First guess at a slice: half of the room in plain English."""


class Weigher:
    """Tokens of atoms. Memory and time are bounded: what is surely over the ceiling is not counted."""

    def __init__(self, text: str, counter: TokenCounter, ceiling_tokens: int) -> None:
        self.text = text
        self.ceiling_tokens = ceiling_tokens
        self._counter = counter
        self._over = ceiling_tokens + 1
        apart = counter.count("one") + counter.count("two")
        self.gap_tokens = max(0, counter.count("one\n\ntwo") - apart)
        """Tokens that a blank between two atoms may cost."""
        self._context_tokens = lru_cache(maxsize=4096)(self._count_context)

    def weigh(self, atoms: Sequence[Atom]) -> list[int]:
        """Tokens of each atom as it is embedded, at least 1; `ceiling + 1` stands for anything above."""
        return self.weigh_texts([self.source(atom) for atom in atoms])

    def weigh_texts(self, texts: Sequence[str]) -> list[int]:
        floors = [_floor(text) for text in texts]
        counted = [index for index, floor in enumerate(floors) if floor <= self.ceiling_tokens]
        counts = self._counter.count_many([texts[index] for index in counted])
        weights = [self._over] * len(texts)
        for index, count in zip(counted, counts, strict=True):
            weights[index] = min(self._over, max(count, floors[index]))
        return weights

    def source(self, atom: Atom) -> str:
        return atom.rendered if atom.rendered is not None else self.text[atom.start : atom.end]

    def context_tokens(self, atom: Atom) -> int:
        """Tokens to keep free for the context of a run that starts with this atom."""
        if not atom.context or atom.context_from == atom.start:
            return 0
        return self._context_tokens(atom.context)

    def _count_context(self, context: str) -> int:
        return min(self.weigh_texts([context])[0], self.ceiling_tokens // 2)


def split_atom(atom: Atom, room: int, weigher: Weigher) -> list[tuple[Atom, int]]:
    """Pieces of an atom that is over `room` tokens, with their weights, each within `room` where any cut can do it.

    A rendering cannot be cut with its source, so an atom that is too large loses it.
    """
    atom = replace(atom, rendered=None)
    text = weigher.text
    if atom.split == "lines":
        spans = list(_line_spans(text, atom.start, atom.end))
    else:
        spans = [(start, end, SENTENCE_COST) for start, end in sentence_spans(text, atom.start, atom.end)]
    weights = weigher.weigh_texts([text[start:end] for start, end, _ in spans])
    pieces: list[tuple[Atom, int]] = []
    for (start, end, cost), weight in zip(spans, weights, strict=True):
        parts = [(start, end, cost, weight)]
        if weight > room:
            parts = list(_slices(text, start, end, cost, room, weigher))
        pieces += [(_piece(atom, low, high, price, text), size) for low, high, price, size in parts]
    return pieces


def halves_of_atom(atom: Atom, weigher: Weigher) -> list[tuple[Atom, int]]:
    """Two pieces of an atom that no boundary divides, between graphemes where there are two of them."""
    text, middle = weigher.text, (atom.start + atom.end + 1) // 2
    alone = _is_one_grapheme(text, atom.start, atom.end)
    stop = _best_stop(text, atom.start, middle, atom.end, inside=alone)[0]
    spans = [(atom.start, stop, atom.cost), (_skip_blank(text, stop, atom.end), atom.end, LETTER_COST)]
    weights = weigher.weigh_texts([text[start:end] for start, end, _ in spans])
    return [
        (_piece(atom, start, end, cost, text), weight)
        for (start, end, cost), weight in zip(spans, weights, strict=True)
        if start < end
    ]


def _piece(atom: Atom, start: int, end: int, cost: float, text: str) -> Atom:
    """A part of an atom: only the first keeps the atom's own cost, the later ones of a fence get its first line."""
    if start <= _skip_blank(text, atom.start, atom.end):
        return replace(atom, start=start, end=end)
    context, context_from = atom.context, atom.context_from
    if atom.kind == "fence" and not context:
        context, context_from = text[atom.start : _line_end(text, atom.start, atom.end)].strip(), atom.start
    return replace(atom, start=start, end=end, cost=cost, heading=None, context=context, context_from=context_from)


def _line_end(text: str, start: int, end: int) -> int:
    match = _LINE_BREAK.search(text, start, end)
    return match.start() if match else end


def _line_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int, float]]:
    """Non-blank lines with the cost of a cut before each: cheaper after a blank line."""
    after_blank = False
    for match in _LINE.finditer(text, start, end):
        line = match.group().rstrip("\r\n")
        if line.strip():
            yield match.start(), match.start() + len(line), BLANK_LINE_COST if after_blank else LINE_COST
        after_blank = not line.strip()
        if match.end() >= end:
            return


def _slices(
    text: str, start: int, end: int, cost: float, room: int, weigher: Weigher
) -> Iterator[tuple[int, int, float, int]]:
    """Cut one sentence or line at the best places into pieces that pack well: of at most half of `room` tokens, but
    for single code points."""
    waiting = [(start, end, cost, max(1, _CHARS_PER_ROOM_TOKEN * room))]
    done: list[tuple[int, int, float, int]] = []
    fine = max(1, room // 2)
    while waiting:
        spans: list[tuple[int, int, float, int]] = []
        for low, high, price, longest in waiting:
            spans += [(*span, longest) for span in _cut_every(text, low, high, price, longest)]
        weights = weigher.weigh_texts([text[low:high] for low, high, _, _ in spans])
        waiting = []
        for (low, high, price, longest), weight in zip(spans, weights, strict=True):
            if weight <= fine or high - low <= 1 or (weight <= room and _is_one_grapheme(text, low, high)):
                done.append((low, high, price, weight))
            else:
                waiting.append((low, high, price, max(1, min(longest, high - low) // 2)))
    yield from sorted(done)


def _is_one_grapheme(text: str, start: int, end: int) -> bool:
    return end - start <= _LONGEST_GRAPHEME and _GRAPHEME.fullmatch(text, start, end) is not None


def _cut_every(text: str, start: int, end: int, cost: float, longest: int) -> Iterator[tuple[int, int, float]]:
    """Slices of about `longest` characters, blanks at their edges left out; only a grapheme that is all there is, or a
    monstrous one, is cut inside."""
    alone = _is_one_grapheme(text, start, end)
    while True:
        start = _skip_blank(text, start, end)
        if start >= end:
            return
        if end - start <= longest:
            yield start, start + len(text[start:end].rstrip()), cost
            return
        stop, next_cost = _best_stop(text, start, start + longest, end, inside=alone)
        yield start, start + len(text[start:stop].rstrip()), cost
        start, cost = stop, next_cost


def _skip_blank(text: str, start: int, end: int) -> int:
    match = _BLANK.match(text, start, end)
    return match.end() if match else start


def _best_stop(text: str, start: int, limit: int, end: int, *, inside: bool) -> tuple[int, float]:
    """Where to end a slice near `limit`, and what the cut costs; passes it rather than cut `inside` a grapheme."""
    middle = start + (limit - start) // 2
    for pattern, cost in ((_LINE_BREAK, LINE_COST), (_PHRASE_END, PHRASE_COST), (_BLANK, WORD_COST)):
        stop = max((match.end() for match in pattern.finditer(text, middle, limit)), default=0)
        if stop > start:
            return stop, cost
    stop = start
    for match in _GRAPHEME.finditer(text, start, min(end, limit + _LONGEST_GRAPHEME)):
        if match.end() > limit:
            if stop == start and not inside and match.end() - start <= _LONGEST_GRAPHEME:
                stop = match.end()
            break
        stop = match.end()
    return (stop, LETTER_COST) if stop > start else (limit, LETTER_COST)


def _floor(text: str) -> int:
    if len(text) < CHARS_PER_TOKEN:
        return 1
    return max(1, -(-(len(text) - _blanks(text)) // CHARS_PER_TOKEN))


def _blanks(text: str) -> int:
    return sum(map(len, _BLANK.findall(text)))
