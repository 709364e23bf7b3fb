"""Structured text: sections by headings, blocks as atoms.

What must stay true: H1 to H3 are hard boundaries, except where a small section stands beside a sibling or right
under its parent's own text; that is decided by the two neighbours alone. A heading is never parted from what
follows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ragd.chunkers.document import GLUED, Atom, Block, Document, Outline, Region, Unit
from ragd.chunkers.limits import Limits
from ragd.chunkers.preparation import CHAIN_COST
from ragd.chunkers.strategies.paragraph import SENTENCE_COST, prose_spans
from ragd.chunkers.tokens import TokenCounter

HARD_LEVELS = 3
SMALL_SHARE = 0.25
_CHARS_PER_TOKEN = 5
"""A section of long rare words is not small because a tokenizer knows them."""

_COSTS = {
    "paragraph": 0.05,
    "quote": 0.05,
    "html": 0.05,
    "table_header": 0.05,
    "fence": 0.15,
    "code": 0.15,
    "table_row": 0.3,
    "table_line": 0.3,
}
_OTHER_COST = 0.1
_LIST_COST, _NESTED_COST, _MOST_LIST_COST = 0.15, 0.1, 0.45
_QUOTE_INNER_COST = 0.25
_SPLIT_BY_LINES = frozenset(["fence", "code", "html", "table_header", "table_row", "table_line"])
_LED_IN = frozenset(["fence", "code", "table_header", "table_line", "list_item", "quote"])


@dataclass(slots=True)
class _Section:
    """A heading of level 1 to 3, or a chain of bare ones, and what stands below it up to the next."""

    path: tuple[str, ...]
    """Path of its last heading."""
    first_path: tuple[str, ...]
    """Path of its first heading."""
    level: int
    """Level of its first heading; 0 before any."""
    start: int
    end: int
    atoms: list[Atom] = field(default_factory=list)
    small: bool = False

    @property
    def bare(self) -> bool:
        return all(atom.heading is not None for atom in self.atoms)


def outline(document: Document, counter: TokenCounter, limits: Limits) -> Outline:
    """Sections of the document's headings, joined where they are small, as regions of atoms."""
    units: list[Unit] = []
    sections = _joined_chains(_sections(document, units))
    _mark_small(sections, document.text, counter, limits)
    regions: list[Region] = []
    before: _Section | None = None
    for section in sections:
        if before is not None and _packs_with(before, section):
            regions[-1].atoms += section.atoms
        elif section.atoms:
            regions.append(Region(list(section.atoms)))
        before = section
    return Outline(regions, units)


def _sections(document: Document, units: list[Unit]) -> list[_Section]:
    """Leaf sections in order; every heading of a hard level opens a unit that reaches to the end of its subtree."""
    sections = [_Section((), (), 0, 0, 0)]
    trail: list[tuple[int, str, int]] = []  # level, text, unit of the headings that hold
    maker = _AtomMaker(document)
    for block in document.blocks:
        if block.kind == "heading" and block.level:
            while trail and trail[-1][0] >= block.level:
                _, _, unit = trail.pop()
                if unit >= 0:
                    units[unit].end = sections[-1].end
            path = tuple(text for _, text, _ in trail if text) + ((block.text,) if block.text else ())
            unit = _open_unit(units) if block.level <= HARD_LEVELS else _innermost(trail)
            if block.level <= HARD_LEVELS:
                units[unit] = Unit("section", block.text, path, block.start, block.end)
                sections.append(_Section(path, path, block.level, block.start, block.end))
            trail.append((block.level, block.text, unit if block.level <= HARD_LEVELS else -1))
        path = tuple(text for _, text, _ in trail if text)
        sections[-1].atoms += maker.atoms(block, path, _innermost(trail))
        sections[-1].end = block.end
    for _, _, unit in trail:
        if unit >= 0:
            units[unit].end = sections[-1].end
    return [section for section in sections if section.atoms]


def _open_unit(units: list[Unit]) -> int:
    units.append(Unit("section", "", (), 0, 0))
    return len(units) - 1


def _innermost(trail: list[tuple[int, str, int]]) -> int:
    return next((unit for _, _, unit in reversed(trail) if unit >= 0), -1)


def _joined_chains(sections: list[_Section]) -> list[_Section]:
    """Sections without a body joined with what follows them."""
    joined: list[_Section] = []
    bare = False
    for section in sections:
        follows_bare, bare = bare, section.bare  # asked once a section: a chain may be as long as the file
        if follows_bare:
            chain = joined[-1]
            section.atoms[0].cost = CHAIN_COST
            chain.atoms += section.atoms
            chain.path, chain.end = section.path, section.end
        else:
            joined.append(section)
    return joined


def _mark_small(sections: list[_Section], text: str, counter: TokenCounter, limits: Limits) -> None:
    most_tokens = SMALL_SHARE * limits.target_tokens
    short = [s for s in sections if s.end - s.start < _CHARS_PER_TOKEN * most_tokens]
    counts = counter.count_many([text[section.start : section.end] for section in short])
    for section, count in zip(short, counts, strict=True):
        section.small = count < most_tokens


def _packs_with(before: _Section, section: _Section) -> bool:
    """Whether two neighbours may share a chunk: one is small, and they are siblings or parent and first child."""
    if section.level <= 1 or not (before.small or section.small):
        return False
    parent = section.first_path[:-1]
    return before.path == parent or (before.path[:-1] == parent and len(before.path) == len(section.first_path))


class _AtomMaker:
    """Blocks to atoms; remembers the block before, because a cut's price depends on both sides."""

    def __init__(self, document: Document) -> None:
        self._text = document.text
        self._before: Block | None = None
        self._header: Block | None = None

    def atoms(self, block: Block, section: tuple[str, ...], unit: int) -> list[Atom]:
        cost = self._cost(block)
        if block.kind != "table_row":
            self._header = block if block.kind == "table_header" else None
        self._before = block
        if block.kind == "heading" and block.level:
            return [Atom(block.start, block.end, cost, "heading", section, block.text, unit=unit)]
        if block.kind == "paragraph" and block.level == 0:
            return [
                Atom(start, end, SENTENCE_COST if index else cost, "paragraph", section, unit=unit, overlap=True)
                for index, (start, end) in enumerate(whole_markup(self._text, prose_spans(self._text, block)))
            ]
        atom = Atom(block.start, block.end, cost, block.kind, section, unit=unit, language=block.language)
        if block.kind in _SPLIT_BY_LINES:
            atom.split = "lines"
        if block.kind in ("table_header", "table_row") and self._header is not None:
            atom.context, atom.context_from = self._header.text, self._header.start
        return [atom]

    def _cost(self, block: Block) -> float:
        """Price of a cut between the block before and this one."""
        before = self._before
        if before is None:
            return 0.0
        if block.kind == "heading" and block.level:
            return CHAIN_COST if before.kind == "heading" else 0.0
        if before.kind == "heading" or self._is_glued(before, block):
            return GLUED
        if before.kind == "rule":
            return 0.0
        if block.kind == "list_item" or block.level:
            new_item = block.kind == "list_item"
            depth_cost = _NESTED_COST * max(0, block.level - (1 if new_item else 0))
            return min(_MOST_LIST_COST, _LIST_COST + depth_cost)
        if block.kind == "quote" and before.kind == "quote":
            return _QUOTE_INNER_COST
        return _COSTS.get(block.kind, _OTHER_COST)

    def _is_glued(self, before: Block, block: Block) -> bool:
        if block.kind == "rule" or (before.kind == "table_header" and block.kind == "table_row"):
            return True
        if block.kind == "html" and self._text[block.start : block.start + 40].lstrip().startswith("</"):
            return True
        pictured = block.kind == "paragraph" and self._text.startswith("![", block.start)
        led_in = (block.kind in _LED_IN or pictured) and before.kind in ("paragraph", "list_item", "quote")
        if led_in and not (block.kind == "quote" and before.kind == "quote"):
            return self._text[max(before.start, before.end - 8) : before.end].rstrip(" \t*_`").endswith((":", "："))
        return False


def whole_markup(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sentences joined where one ends inside a code span or a link."""
    joined: list[tuple[int, int]] = []
    open_start: int | None = None
    ticks = brackets = 0
    for start, end in spans:
        sentence = text[start:end]
        ticks += sentence.count("`")
        brackets = max(0, brackets + sentence.count("[") - sentence.count("]"))
        first = start if open_start is None else open_start
        if (ticks % 2 or brackets) and (start, end) != spans[-1]:
            open_start = first
            continue
        joined.append((first, end))
        open_start, ticks, brackets = None, 0, 0
    return joined
