"""Prose: sentences grouped by paragraph, chapters as hard boundaries.

What must stay true: atoms are sentences (or lines, where the text is made of lines), and the first atom of a
paragraph is a cheap place to cut. An underlined title stays whole and with what it stands above.
"""

from __future__ import annotations

import re

from ragd.chunkers.document import GLUED, Atom, Block, Document, Outline, Region, Unit
from ragd.chunkers.limits import Limits
from ragd.chunkers.sentences import sentence_spans
from ragd.chunkers.tokens import TokenCounter

PARAGRAPH_COST, LINE_COST, SENTENCE_COST = 0.05, 0.15, 0.35

_RULES = frozenset("=-~^\"'#*+`:._")
_MOST_TITLE_CHARS = 300
_LINE_END = re.compile(r"\r\n|\r|\n")
_DRAWN_LINE = re.compile(r"[ \t]*[|+][^\r\n]*(?:\r\n|\r|\n|\Z)")


def outline(document: Document, counter: TokenCounter, limits: Limits) -> Outline:
    """A region per chapter; every other block is a paragraph, whatever its kind."""
    del counter, limits
    made = Outline([])
    section: tuple[str, ...] = ()
    region: list[Atom] = []
    unit = -1
    under_title = False
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
        lines = drawn_lines(document.text, block)
        spans = [(block.start, block.end)] if under_title else lines or prose_spans(document.text, block)
        may_repeat = not under_title and not lines
        for index, (start, end) in enumerate(spans):
            inside = _line_cost(document.text, start) if lines else SENTENCE_COST
            cost = inside if index else GLUED if glued else PARAGRAPH_COST
            region.append(Atom(start, end, cost, "paragraph", section, unit=unit, overlap=may_repeat))
    if region:
        made.regions.append(Region(region))
    for before, after in zip(made.units, made.units[1:], strict=False):
        before.end = after.start
    return made


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


def drawn_lines(text: str, block: Block) -> list[tuple[int, int]]:
    """Spans of the lines of a table drawn with + and |; none when the paragraph is something else."""
    spans: list[tuple[int, int]] = []
    position = block.start
    while position < block.end:
        match = _DRAWN_LINE.match(text, position, block.end)
        if match is None:
            return []
        spans.append((position, position + len(match.group().rstrip("\r\n"))))
        position = match.end()
    return spans if len(spans) > 1 else []


def _line_cost(text: str, start: int) -> float:
    """Between two rows of a drawn table is a better place than within one of several lines."""
    return PARAGRAPH_COST if text[start : start + 200].lstrip(" \t").startswith("+") else LINE_COST


def prose_spans(text: str, block: Block) -> list[tuple[int, int]]:
    """Spans of a paragraph's sentences; the first begins and the last ends where the paragraph does."""
    spans = list(sentence_spans(text, block.start, block.end))
    if not spans:
        return []
    spans[0] = (block.start, spans[0][1])
    spans[-1] = (spans[-1][0], block.end)
    return spans
