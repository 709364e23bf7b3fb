"""Header rows of Markdown tables.

What must stay true: the header text has all header rows and exactly one delimiter row, so that rows under it are
a table again.
"""

from __future__ import annotations

import re

from ragd.chunkers.decode import unified_newlines

_OUTER = re.compile(r"^[\s>]*|\s*$")
_CELL_END = re.compile(r"(?<!\\)\|")


def header_text(source: str) -> str:
    """Header and delimiter rows as context lines, without indent and quote markers."""
    return "\n".join(_OUTER.sub("", line) for line in unified_newlines(source).split("\n"))


def leading_header_rows(paragraph_lines: list[str], header_line: str) -> int:
    """How many of the last lines of the paragraph right above a table are header rows of it too.

    GitHub's table rule knows one header row; people write two, and then the first is a paragraph.
    """
    cells = _cells(header_line)
    count = 0
    for line in reversed(paragraph_lines):
        if "|" not in line or _cells(line) != cells:
            break
        count += 1
    return count


def _cells(line: str) -> int:
    return len(_CELL_END.split(_OUTER.sub("", line).strip("|")))
