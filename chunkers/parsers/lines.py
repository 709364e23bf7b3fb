"""The lines of a text: where each begins, ends and how far it is indented.

Must stay true: CRLF, CR and LF end a line alike, so that the same file saved on another system has the same lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain

_NEWLINE = re.compile(r"\r\n|\r|\n")
_INDENT = re.compile(r"[ \t\f\v]*")


@dataclass(frozen=True, slots=True)
class Lines:
    """Line `i` is `text[starts[i]:ends[i]]`, its newline left out. All lists have one entry a line."""

    starts: list[int]
    ends: list[int]
    indents: list[int]
    """Characters of white space a line begins with; -1 for a blank line."""

    def last_inked(self, row: int, first: int) -> int:
        """The last line in first..row that is not blank, or `first`."""
        while row > first and self.indents[row] < 0:
            row -= 1
        return row


def lines_of(text: str) -> Lines:
    """Split `text`; an empty text has one empty line."""
    starts, ends, indents = [], [], []
    at = 0
    for newline in chain(_NEWLINE.finditer(text), (None,)):
        end = len(text) if newline is None else newline.start()
        starts.append(at)
        ends.append(end)
        indents.append(indent_of(text, at, end))
        at = end if newline is None else newline.end()
    return Lines(starts, ends, indents)


def indent_of(text: str, start: int, end: int) -> int:
    """Characters of white space in front of the first other one, or -1 when there is no other."""
    match = _INDENT.match(text, start, end)
    width = match.end() - start if match else 0
    return width if text[start + width : end].strip() else -1


def block_starts(lines: Lines, first: int, last: int) -> list[tuple[int, int]]:
    """Where the blocks of lines first..last begin when nothing but their layout is known: (row, depth).

    A block begins after a blank line; its depth is 0 at the smallest indentation of the range and 1 beyond it.
    """
    inked = [row for row in range(first, last + 1) if lines.indents[row] >= 0]
    if not inked:
        return []
    base = min(lines.indents[row] for row in inked)
    found = []
    for before, row in zip([-2, *inked], inked, strict=False):
        if row - before > 1:
            found.append((row, 0 if lines.indents[row] <= base else 1))
    return found
