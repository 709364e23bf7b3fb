"""Code and configuration without a grammar: runs of lines between blank ones.

Must stay true: every inked line is in exactly one block; blocks are whole lines.
"""

from __future__ import annotations

from ragd.chunkers.document import Block, Document
from ragd.chunkers.parsers.extensions import language_by_name
from ragd.chunkers.parsers.lines import block_starts, lines_of


def parse(text: str, *, name: str) -> Document:
    """Blocks of kind `block`; `level` is 0 for those at the smallest indentation of the file."""
    language = language_by_name(name)
    document = Document(text=text, type=language or "code", language=language)
    lines = lines_of(text)
    starts = block_starts(lines, 0, len(lines.starts) - 1)
    for (row, depth), following in zip(starts, [*starts[1:], (len(lines.starts), 0)], strict=False):
        last = lines.last_inked(following[0] - 1, row)
        document.blocks.append(Block("block", lines.starts[row], lines.ends[last], level=depth, language=language))
    return document
