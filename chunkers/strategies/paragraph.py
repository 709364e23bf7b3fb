"""Prose: sentences grouped by paragraph, chapters as hard boundaries.

What must stay true: atoms are sentences (or lines, where the text is made of lines), and the first atom of a
paragraph is a cheap place to cut. An underlined title stays whole and with what it stands above, a table's row with
its column names.
"""

from __future__ import annotations

import re

from ragd.chunkers.document import GLUED, Atom, Block, Document, Outline, Region, Unit
from ragd.chunkers.limits import Limits
from ragd.chunkers.sentences import sentence_spans
from ragd.chunkers.strategies.drawn import DrawnTable, drawn_table, line_cost
from ragd.chunkers.tokens import TokenCounter

PARAGRAPH_COST, SENTENCE_COST = 0.05, 0.35

_RULES = frozenset("=-~^\"'#*+`:._")
_DIRECTIVE = re.compile(r"[ \t]*\.\. [\w:-]+::[^\r\n]*(?:(?:\r\n|\r|\n)[ \t]+:[^\r\n]*)*")
"""A directive of reStructuredText with its options: its content is the indented paragraph below."""
_ANNOUNCED = re.compile(r"[ \t]+\S|[-*+•][ \t]|\d{1,3}[.)][ \t]|\.\. ")
_MOST_TITLE_CHARS = 300
_LINE_END = re.compile(r"\r\n|\r|\n")


def outline(document: Document, counter: TokenCounter, limits: Limits) -> Outline:
    """A region per chapter; every other block is a paragraph, whatever its kind."""
    del counter, limits
    made = Outline([])
    section: tuple[str, ...] = ()
    region: list[Atom] = []
    unit = -1
    under_title = False
    header: Block | None = None
    before: Block | None = None
    for block in document.blocks:
        if block.kind == "heading":
            if region and region[-1].kind != "heading":
                made.regions.append(Region(region))
                region = []
            section, unit = (block.text,), len(made.units)
            made.units.append(Unit("chapter", block.text, section, block.start, len(document.text)))
            region.append(
                Atom(
                    block.start,
                    block.end,
                    GLUED if region else 0.0,
                    "heading",
                    section,
                    block.text,
                    unit=unit,
                )
            )
            continue
        glued = under_title or (bool(region) and region[-1].kind == "heading")
        under_title = is_underlined(document.text, block)
        atoms = _paragraph(document.text, block, whole=under_title)
        if block.kind != "table_row":
            header = block if block.kind == "table_header" else None
        if header is not None:
            for atom in atoms:
                atom.context, atom.context_from = header.text, header.start
            glued = glued or before is header
        glued = glued or (before is not None and leads_in(document.text, before, block))
        for atom in atoms:
            atom.section, atom.unit = section, unit
        if atoms and glued:
            atoms[0].cost = GLUED
        region += atoms
        before = block
    if region:
        made.regions.append(Region(region))
    for earlier, later in zip(made.units, made.units[1:], strict=False):
        earlier.end = later.start
    return made


def leads_in(text: str, before: Block, block: Block) -> bool:
    """Whether a paragraph ends with a colon and the next one is what it announces: indented or a list."""
    announces = text[max(before.start, before.end - 8) : before.end].rstrip().endswith((":", "："))
    if not announces and before.end - before.start < _MOST_TITLE_CHARS:
        announces = _DIRECTIVE.fullmatch(text, before.start, before.end) is not None
    return announces and _ANNOUNCED.match(text, block.start, block.end) is not None


def _paragraph(text: str, block: Block, *, whole: bool) -> list[Atom]:
    """The atoms of one paragraph: sentences, or the lines of a drawn table, or one where it must stay `whole`."""
    table = None if whole else drawn_table(text, block.start, block.end)
    if table is not None:
        return _table_lines(text, table)
    if whole or block.kind in ("table_header", "table_row", "table_line"):
        return [Atom(block.start, block.end, PARAGRAPH_COST, "paragraph", split="prose" if whole else "lines")]
    return [
        Atom(start, end, SENTENCE_COST if index else PARAGRAPH_COST, "paragraph", overlap=True)
        for index, (start, end) in enumerate(prose_spans(text, block))
    ]


def _table_lines(text: str, table: DrawnTable) -> list[Atom]:
    """A line each, the header's with the first row below it; each row under the header it needs."""
    atoms: list[Atom] = []
    for index, (start, end) in enumerate(table.lines):
        cost = line_cost(text, start) if index else PARAGRAPH_COST
        atom = Atom(start, end, GLUED if 0 < index <= table.header_lines else cost, "paragraph", split="lines")
        if index >= table.header_lines > 0:
            atom.context, atom.context_from = table.header, table.lines[0][0]
        atoms.append(atom)
    return atoms


def is_underlined(text: str, block: Block) -> bool:
    """Whether a paragraph is one line over a line of one sign that is about as long, or longer; also with such a line
    above."""
    if block.end - block.start > _MOST_TITLE_CHARS:
        return False
    lines = [line.strip() for line in _LINE_END.split(text[block.start : block.end])]
    if len(lines) == 3 and _is_rule(lines[0]):
        del lines[0]
    return len(lines) == 2 and not _is_rule(lines[0]) and _is_rule(lines[1]) and len(lines[0]) <= len(lines[1]) + 2


def _is_rule(line: str) -> bool:
    return len(line) >= 3 and line[0] in _RULES and line == line[0] * len(line)


def prose_spans(text: str, block: Block) -> list[tuple[int, int]]:
    """Spans of a paragraph's sentences; the first begins and the last ends where the paragraph does."""
    spans = list(sentence_spans(text, block.start, block.end))
    if not spans:
        return []
    spans[0] = (block.start, spans[0][1])
    spans[-1] = (spans[-1][0], block.end)
    return spans
