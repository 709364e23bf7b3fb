"""Sentences with exact positions. The only door to nupunkt.

What must stay true: the spans are in order, hold every non-blank character of the range and no blank at their edges,
and the work is linear even for texts made to defeat the sentence finder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import nupunkt

_MOST_CHARS = 20_000
"""A paragraph longer than this is handed over in slices."""
_LONGEST_CHARS = 2_000
"""A sentence longer than this is taken line by line: it fits no model's window of some hundred tokens anyway."""
_LINE = re.compile(r"[^\r\n]+")
_LONG_WORD = re.compile(r"\S{400,}")
"""No sentence ends inside; the finder needs quadratic time for runs of punctuation."""
_CJK_END = re.compile(r"(?<=[。！？])(?=[^。！？」』）\s])")
_MAY_END = re.compile(r"[.!?…‽⁇-⁉][^\w\s]*\s+\S")
"""Without such a place there is but one sentence: most paragraphs of lists and logs."""
_LINE_NEAR = re.compile(r"[\r\n]\s*")
_BLANK_NEAR = re.compile(r"\s+(?=\S)")


def sentence_spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Half-open spans of the sentences of `text[start:end]`, blanks between them left out."""
    position = start
    for match in _LONG_WORD.finditer(text, start, end):
        yield from _in_slices(text, position, match.start())
        yield match.span()
        position = match.end()
    yield from _in_slices(text, position, end)


def _in_slices(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > _MOST_CHARS:
        match = _LINE_NEAR.search(text, start + _MOST_CHARS, min(end, start + 2 * _MOST_CHARS))
        match = match or _BLANK_NEAR.search(text, start + _MOST_CHARS, end)
        stop = match.end() if match else end
        spans = list(_sentences(text, start, stop))
        if stop < end and len(spans) > 1 and spans[-1][0] - start > _MOST_CHARS // 2:
            # The last one may go on behind the slice, so it begins the next: where a slice ends is then seen nowhere.
            stop = spans.pop()[0]
        yield from spans
        start = stop
    yield from _sentences(text, start, end)


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:

    part = text[start:end]
    if not part.strip():
        return
    for low, high in _found(part):
        pieces = _at_cjk_ends(part, low, high) if high - low <= _LONGEST_CHARS else _lines(part, low, high)
        for first, last in pieces:
            sentence = part[first:last]
            left = len(sentence) - len(sentence.lstrip())
            if left < len(sentence):
                yield start + first + left, start + first + len(sentence.rstrip())


def _found(part: str) -> list[tuple[int, int]]:
    """Spans that tile the part. Without a blank there is no end of a sentence: `[![badge]` is one word."""
    if not _MAY_END.search(part):
        return [(0, len(part))]
    spans: list[tuple[int, int]] = []
    for low, high in nupunkt.sent_spans(part):
        if spans and not part[low - 1].isspace() and not part[low].isspace():
            spans[-1] = (spans[-1][0], high)
        else:
            spans.append((low, high))
    return spans


def _lines(part: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Lines of what is no sentence but a log, a list or a poem: where they end depends on nothing before them."""
    for match in _LINE.finditer(part, low, high):
        yield from _at_cjk_ends(part, *match.span())


def _at_cjk_ends(part: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    for match in _CJK_END.finditer(part, low, high):
        yield low, match.start()
        low = match.start()
    yield low, high
