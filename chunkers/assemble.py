"""Runs of atoms to finished chunks: prefix, overlap, exact spans, lines, ids, parents.

What must stay true: `embedded_text == prefix + overlap + render(text)`, its tokens were counted as one string, and no
chunk is over the ceiling: overlap goes first, then the prefix is shortened, at last the body is cut once more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ragd.chunkers.decode import Decoded, unified_newlines
from ragd.chunkers.document import Atom, Document, Outline
from ragd.chunkers.ids import IdMaker
from ragd.chunkers.limits import Limits
from ragd.chunkers.packing import Run, pack
from ragd.chunkers.parents import ParentMaker
from ragd.chunkers.prefix import PrefixMaker
from ragd.chunkers.records import Chunk, Parent, Span
from ragd.chunkers.splitting import Weigher, halves_of_atom, split_atom
from ragd.chunkers.tokens import TokenCounter

VERSION = 1

_KINDS = {
    "paragraph": "prose",
    "list_item": "list",
    "table_header": "table",
    "table_row": "table",
    "table_line": "table",
}
"""Kinds of chunks that are not called like their atoms."""
_LONGER_FIRST = 1.5
"""One sentence may be this much longer than the overlap that was asked for."""


@dataclass(slots=True)
class _Draft:
    """A chunk whose text stands but whose size has not been proven yet."""

    run: Run
    section: tuple[str, ...]
    prefix: str
    overlap: str
    overlap_atoms: list[Atom]
    body: str

    @property
    def embedded_text(self) -> str:
        return self.prefix + self.overlap + self.body


def assemble(
    document: Document,
    outline: Outline,
    maps: Decoded,
    title: str,
    instruction: str,
    counter: TokenCounter,
    limits: Limits,
    ids: IdMaker,
) -> tuple[tuple[Chunk, ...], tuple[Parent, ...]]:
    """Pack an outline and finish its chunks; `maps` belongs to the text that the outline's offsets mean."""
    prefixes = PrefixMaker(title, document.sole_heading, counter, limits)
    runs = pack(outline, maps.text, counter, limits, prefixes.lead_tokens)
    drafter = _Drafter(maps.text, instruction, counter, limits, prefixes)
    drafts, tokens = drafter.drafts(runs)
    parents = ParentMaker(outline.units, maps, ids)
    owners = parents.owners([draft.run for draft in drafts], [draft.section for draft in drafts])
    chunks: list[Chunk] = []
    for ordinal, (draft, owner, count) in enumerate(zip(drafts, owners, tokens, strict=True)):
        kind = _kind(draft.run)
        spans = _spans(draft.run.atoms, maps)
        atoms = draft.run.atoms
        chunks.append(
            Chunk(
                id=ids.chunk_id(kind, draft.embedded_text),
                kind=kind,
                section=draft.section,
                text="".join(maps.text[start:end] for start, end in _char_spans(atoms, maps.text)),
                prefix=draft.prefix,
                overlap=draft.overlap,
                embedded_text=draft.embedded_text,
                spans=spans,
                overlap_spans=_spans(draft.overlap_atoms, maps),
                start_line=maps.line_at(atoms[0].start),
                end_line=maps.line_at(max(atoms[0].start, atoms[-1].end - 1)),
                tokens=count + limits.reserved_tokens,
                ordinal=ordinal,
                parent=owner,
                locator=_locator(document, atoms[0].start),
                language=_only({atom.language for atom in atoms}),
                symbol=_symbols(atoms),
            )
        )
    return tuple(chunks), parents.parents()


class _Drafter:
    """Makes drafts and proves their size."""

    def __init__(
        self, text: str, instruction: str, counter: TokenCounter, limits: Limits, prefixes: PrefixMaker
    ) -> None:
        self._text = text
        self._instruction = instruction
        self._counter = counter
        self._limits = limits
        self._prefixes = prefixes
        self._weigher = Weigher(text, counter, limits.ceiling_tokens)

    def drafts(self, runs: Sequence[Run]) -> tuple[list[_Draft], list[int]]:
        """Drafts of all runs, each within the ceiling, and the tokens of each."""
        drafts: list[_Draft] = []
        before: Run | None = None
        for run in runs:
            drafts.append(self._draft(run, before))
            before = run
        proven: list[_Draft] = []
        tokens: list[int] = []
        for draft, count in zip(drafts, self._tokens_of(drafts), strict=True):
            if count <= self._limits.ceiling_tokens:
                proven.append(draft)
                tokens.append(count)
            else:
                squeezed = self._squeezed(draft)
                proven += squeezed
                tokens += self._tokens_of(squeezed)
        return proven, tokens

    def _tokens_of(self, drafts: Sequence[_Draft]) -> list[int]:
        """Tokens of each draft's text without what every chunk pays for instruction and special tokens."""
        texts = [self._instruction + draft.embedded_text for draft in drafts]
        paid = self._limits.reserved_tokens - self._counter.special_tokens
        return [count - paid for count in self._counter.count_many(texts)]

    def _draft(self, run: Run, before: Run | None) -> _Draft:
        section = section_of(run.atoms)
        overlap_atoms: list[Atom] = []
        if before is not None and before.region == run.region:
            overlap_atoms = self._overlap(before, run)
        overlap = ""
        if overlap_atoms:
            overlap = unified_newlines(self._text[overlap_atoms[0].start : run.atoms[0].start])
        prefix = self._prefixes.prefix(run.atoms, section)
        return _Draft(run, section, prefix, overlap, overlap_atoms, self._body(run.atoms))

    def _overlap(self, before: Run, run: Run) -> list[Atom]:
        """The last atoms of the run before, where both are prose of one section; one atom may be a little longer."""
        allowed = self._limits.overlap_tokens
        first = run.atoms[0]
        if not first.overlap or allowed < 1:
            return []
        taken: list[Atom] = []
        weight, following = 0, first.start
        for atom, size in zip(reversed(before.atoms), reversed(before.weights), strict=True):
            if not atom.overlap or atom.section != first.section or self._text[atom.end : following].strip():
                break
            if weight + size > (allowed if taken else _LONGER_FIRST * allowed):
                break
            taken.insert(0, atom)
            weight += size
            following = atom.start
        # the whole run again would be no overlap but a copy
        return taken if len(taken) < len(before.atoms) else []

    def _body(self, atoms: Sequence[Atom]) -> str:
        parts: list[str] = []
        for atom, after in zip(atoms, [*atoms[1:], None], strict=True):
            parts.append(
                atom.rendered if atom.rendered is not None else unified_newlines(self._text[atom.start : atom.end])
            )
            if after is not None:
                parts.append(_gap(self._text, atom, after))
        return unified_newlines("".join(parts)) if any(atom.rendered for atom in atoms) else "".join(parts)

    def _squeezed(self, draft: _Draft) -> list[_Draft]:
        """Drafts within the ceiling for one that is over it."""
        ceiling = self._limits.ceiling_tokens
        draft = replace(draft, overlap="", overlap_atoms=[])
        room = ceiling
        for _ in range(4):  # counts of parts do not add up exactly: a few tries find the room that is left
            excess = self._tokens_of([draft])[0] - ceiling
            if excess <= 0:
                return [draft]
            if not draft.prefix:
                break
            room = min(room, self._counter.count(draft.prefix)) - excess
            draft = replace(draft, prefix=self._prefixes.prefix(draft.run.atoms, draft.section, room))
        draft = replace(draft, prefix="")
        if self._tokens_of([draft])[0] <= ceiling or len(draft.body) < 2:
            return [draft]
        return [proven for run in self._halves(draft.run) for proven in self._squeezed(self._draft(run, None))]

    def _halves(self, run: Run) -> list[Run]:
        """Two or more smaller runs: cut before the cheapest atom near the middle, or inside the only atom."""
        atoms, weights = run.atoms, run.weights
        if len(atoms) == 1:
            room = max(1, min(weights[0], self._limits.ceiling_tokens) // 2)
            pieces = split_atom(atoms[0], room, self._weigher)
            if len(pieces) < 2 and pieces[0][0] == atoms[0]:
                pieces = halves_of_atom(atoms[0], self._weigher)
            return [replace(run, atoms=[atom], weights=[weight]) for atom, weight in pieces]
        low, high = max(1, len(atoms) // 4), max(2, len(atoms) - len(atoms) // 4)
        cut = min(range(low, min(high, len(atoms))), key=lambda i: (atoms[i].cost, abs(2 * i - len(atoms)), i))
        return [
            replace(run, atoms=atoms[:cut], weights=weights[:cut]),
            replace(run, atoms=atoms[cut:], weights=weights[cut:]),
        ]


def section_of(atoms: Sequence[Atom]) -> tuple[str, ...]:
    """The section path that holds for all of a run: bare headings in front do not count."""
    paths = [atom.section for atom in atoms if atom.heading is None] or [atoms[-1].section]
    shared = paths[0]
    for path in paths[1:]:
        length = 0
        for one, other in zip(shared, path, strict=False):
            if one != other:
                break
            length += 1
        shared = shared[:length]
    return shared


def _gap(text: str, atom: Atom, after: Atom) -> str:
    """What is embedded between two atoms: the blank that stands there, or nothing where a dropped region begins."""
    between = text[atom.end : after.start]
    if between.strip():
        between = between[: len(between) - len(between.lstrip())]
    return unified_newlines(between)


def _char_spans(atoms: Sequence[Atom], text: str) -> list[Span]:
    """Spans of a run: one, but where something dropped lies between two atoms."""
    spans: list[Span] = []
    for atom in atoms:
        if spans:
            start, end = spans[-1]
            between = text[end : atom.start]
            if not between.strip():
                spans[-1] = (start, atom.end)
                continue
            spans[-1] = (start, end + len(between) - len(between.lstrip()))
        spans.append((atom.start, atom.end))
    return spans


def _spans(atoms: Sequence[Atom], maps: Decoded) -> tuple[Span, ...]:
    return tuple((maps.byte_at(start), maps.byte_at(end)) for start, end in _char_spans(atoms, maps.text))


def _kind(run: Run) -> str:
    """The kind that most of the run's tokens have; headings count only among themselves."""
    tokens: dict[str, int] = {}
    for atom, weight in zip(run.atoms, run.weights, strict=True):
        kind = _KINDS.get(atom.kind, atom.kind)
        tokens[kind] = tokens.get(kind, 0) + weight
    if len(tokens) > 1:
        tokens.pop("heading", None)
    return max(tokens, key=lambda kind: tokens[kind])


def _locator(document: Document, start: int) -> str | None:
    index = bisect_right(document.locators, start, key=lambda entry: entry[0])
    return document.locators[index - 1][1] if index else None


def _only(values: set[str | None]) -> str | None:
    named = {value for value in values if value is not None}
    return named.pop() if len(named) == 1 else None


def _symbols(atoms: Sequence[Atom]) -> str | None:
    """Names of what the chunk defines, in order."""
    named = dict.fromkeys(atom.symbol for atom in atoms if atom.symbol is not None)
    return ", ".join(named) or None
