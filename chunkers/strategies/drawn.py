"""Tables that people draw with signs in plain text: grids of + and |, rows of |, columns between lines of =.

What must stay true: a table is cut between its lines, and every piece can be given the header it stands under.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

ROW_COST, LINE_COST = 0.05, 0.15

Span = tuple[int, int]

_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
_DRAWN_LINE = re.compile(r"[ \t]*[|+].*")
_COLUMN_RULE = re.compile(r"[ \t]*=+(?:[ \t]+=+)+[ \t]*")
_RULE = re.compile(r"[ \t]*[|+][ \t]*:?[-=]+[-=:+| \t]*")
_MOST_HEADER_LINES = 6
_FEW_RULES = 3
"""A grid with more rules than this has one below each row: only one of = says which row is the header."""


@dataclass(frozen=True, slots=True)
class DrawnTable:
    """Spans of its lines; how many of the first are its header, and the header as context for what stands below."""

    lines: list[Span] = field(default_factory=list)
    header_lines: int = 0
    header: str = ""


def drawn_table(text: str, start: int, end: int) -> DrawnTable | None:
    """The table that a paragraph is, or None when it is something else."""
    first = _line_at(text, start, end)
    is_drawn = _DRAWN_LINE.fullmatch(first)
    if not is_drawn and not _COLUMN_RULE.fullmatch(first):
        return None
    spans: list[Span] = []
    while start < end:
        match = _LINE.match(text, start, end)
        if match is None or (is_drawn and not _DRAWN_LINE.fullmatch(match.group(1))):
            return None
        spans.append(match.span(1))
        start = match.end()
    if len(spans) < 2:
        return None
    lines = [text[low:high].strip() for low, high in spans]
    count = _header_lines(lines) if is_drawn else _column_header_lines(lines)
    above = 1 if _RULE.fullmatch(lines[0]) else 0
    return DrawnTable(spans, count, "\n".join(filter(None, map(_as_context, lines[above:count]))))


def line_cost(text: str, start: int) -> float:
    """Price of a cut before a line: between two rows of a grid is a better place than within one of several lines."""
    return ROW_COST if text[start : start + 200].lstrip(" \t").startswith("+") else LINE_COST


def _line_at(text: str, start: int, end: int) -> str:
    match = _LINE.match(text, start, end)
    return match.group(1) if match else ""


def _header_lines(lines: Sequence[str]) -> int:
    """Lines up to the rule below the header; 0 without a header. A rule above the header belongs to it."""
    rules = [index for index, line in enumerate(lines) if _RULE.fullmatch(line)]
    doubled = [index for index in rules if "=" in lines[index]]
    is_grid = lines[0].startswith("+")
    if doubled:
        last = doubled[0]
    elif is_grid and len(rules) > _FEW_RULES:
        return 0
    else:
        last = next((index for index in rules if index > 0), 0)
    return last + 1 if 0 < last <= _MOST_HEADER_LINES and last < len(lines) - 1 else 0


def _column_header_lines(lines: Sequence[str]) -> int:
    """The same for columns between lines of =: with a header there are three such lines."""
    rules = [index for index, line in enumerate(lines) if _COLUMN_RULE.fullmatch(line)]
    return rules[1] + 1 if len(rules) > 2 and rules[1] <= _MOST_HEADER_LINES else 0


def _as_context(line: str) -> str:
    """A header row as it stands; of the rules only that of rows of |, in the form that takes the fewest tokens."""
    if _COLUMN_RULE.fullmatch(line) or (_RULE.fullmatch(line) and line.startswith("+")):
        return ""
    return re.sub(r"-+", "---", line.replace(" ", "")) if _RULE.fullmatch(line) else line
