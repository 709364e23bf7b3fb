"""Code and configuration without a grammar: blocks between blank lines, ranked by their indent.

What must stay true: a cut is cheapest before an unindented line that follows a blank one.
"""

from __future__ import annotations

import re

from ragd.chunkers.document import GLUED, Atom, Block, Document, Outline, Region
from ragd.chunkers.limits import Limits
from ragd.chunkers.tokens import TokenCounter

_DEPTH_COST = 0.12
_BLANK_COST = 0.1
_DEEPEST = 5
_COMMENT_ONLY = re.compile(r"\s*(?:#|//|--|;|/\*|\*|%|\"|').*")


def outline(document: Document, counter: TokenCounter, limits: Limits) -> Outline:
    """One region of blocks; a block of comments is glued to what follows it."""
    del counter, limits
    atoms: list[Atom] = []
    glue = False
    header: Block | None = None
    for block in document.blocks:
        text = document.text[block.start : block.end]
        indent = len(text.expandtabs(4)) - len(text.expandtabs(4).lstrip())
        cost = GLUED if glue else _BLANK_COST + _DEPTH_COST * min(_DEEPEST, indent // 4)
        atom = Atom(block.start, block.end, cost, "block", split="lines", language=document.language)
        if block.kind != "table_row":
            header = block if block.kind == "table_header" else None
        if header is not None:
            atom.context, atom.context_from = header.text, header.start
        atoms.append(atom)
        lines = text.splitlines()
        glue = len(lines) <= 10 and all(_COMMENT_ONLY.fullmatch(line) for line in lines)
        glue = glue or block is header
    return Outline([Region(atoms)] if atoms else [])
