"""Prose: sentences grouped by paragraph, chapters as hard boundaries.

What must stay true: atoms are sentences (or lines, where the text is made of lines), and the first atom of a
paragraph is a cheap place to cut.
"""

from __future__ import annotations

from ragd.chunkers.document import GLUED, Atom, Block, Document, Outline, Region, Unit
from ragd.chunkers.limits import Limits
from ragd.chunkers.sentences import sentence_spans
from ragd.chunkers.tokens import TokenCounter

PARAGRAPH_COST, LINE_COST, SENTENCE_COST = 0.05, 0.15, 0.35


def outline(document: Document, counter: TokenCounter, limits: Limits) -> Outline:
    """A region per chapter; every other block is a paragraph, whatever its kind."""
    del counter, limits
    made = Outline([])
    section: tuple[str, ...] = ()
    region: list[Atom] = []
    unit = -1
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
        after_heading = bool(region) and region[-1].kind == "heading"
        for index, (start, end) in enumerate(prose_spans(document.text, block)):
            cost = SENTENCE_COST if index else GLUED if after_heading else PARAGRAPH_COST
            region.append(Atom(start, end, cost, "paragraph", section, unit=unit, overlap=True))
    if region:
        made.regions.append(Region(region))
    for before, after in zip(made.units, made.units[1:], strict=False):
        before.end = after.start
    return made


def prose_spans(text: str, block: Block) -> list[tuple[int, int]]:
    """Spans of a paragraph's sentences; the first begins and the last ends where the paragraph does."""
    spans = list(sentence_spans(text, block.start, block.end))
    if not spans:
        return []
    spans[0] = (block.start, spans[0][1])
    spans[-1] = (spans[-1][0], block.end)
    return spans
