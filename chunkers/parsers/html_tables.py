"""Tables of web pages as rows of cells.

Must stay true: each cell's text stands in exactly one row, in order; spanned places are empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from justhtml import Node

from ragd.chunkers.parsers.html_page import BLOCKS, attribute, children, is_dropped

_SECTIONS = frozenset(["thead", "tbody", "tfoot"])
_MOST_SPAN = 100


@dataclass(slots=True)
class Row:
    """Cells as lines of Markdown show them."""

    cells: list[str]
    is_header: bool
    line: int
    """1-based line of the source it begins on, 0 if unknown."""
    anchor: str = ""


@dataclass(slots=True)
class Table:
    rows: list[Row] = field(default_factory=list)
    caption: str = ""
    columns: int = 0
    """Cells of the longest row."""

    @property
    def header_rows(self) -> int:
        """How many of the first rows name the columns."""
        count = 0
        while count < len(self.rows) and self.rows[count].is_header:
            count += 1
        return count if count < len(self.rows) else 0


def table_of(node: Node) -> Table:
    """The rows of a table of values; rows without any text are left out."""
    table = Table()
    spans: dict[int, int] = {}  # column -> rows that a cell above still covers
    stack = [(child, False) for child in reversed(children(node))]
    while stack:
        here, in_head = stack.pop()
        if here.name == "caption":
            table.caption = cell_text(here)
        elif here.name in _SECTIONS:
            stack.extend((child, here.name == "thead") for child in reversed(children(here)))
        elif here.name == "tr" and not is_dropped(here, outside_main=False):
            row = _row_of(here, in_head, spans)
            if any(row.cells):
                table.rows.append(row)
                table.columns = max(table.columns, len(row.cells))
    return table


def _row_of(node: Node, in_head: bool, spans: dict[int, int]) -> Row:
    cells: list[str] = []
    names: list[str] = []
    for cell in children(node):
        if cell.name not in ("td", "th") or is_dropped(cell, outside_main=False):
            continue
        while spans.get(len(cells), 0) > 0:
            spans[len(cells)] -= 1
            cells.append("")
        names.append(cell.name)
        width, height = _span(cell, "colspan"), _span(cell, "rowspan")
        for column in range(len(cells), len(cells) + width):
            spans[column] = height - 1
        cells += [cell_text(cell), *[""] * (width - 1)]
    is_header = bool(names) and (in_head or all(name == "th" for name in names))
    return Row(cells, is_header, node.origin_line or 0, attribute(node, "id"))


def _span(cell: Node, name: str) -> int:
    value = attribute(cell, name).strip()
    return min(_MOST_SPAN, max(1, int(value))) if value.isascii() and value.isdigit() and len(value) < 6 else 1


def cell_text(node: Node) -> str:
    """The text of a cell on one line."""
    pieces: list[str] = []
    stack = [node]
    while stack:
        here = stack.pop()
        if here.name == "#text":
            pieces.append(str(here.data or ""))
            continue
        if here is not node and is_dropped(here, outside_main=False):
            continue
        if here.name in BLOCKS or here.name == "br":
            pieces.append(" ")
            stack.extend(reversed(children(here)))
        else:
            stack.extend(reversed(children(here)))
    return " ".join("".join(pieces).replace("\u00ad", "").split())


def row_text(cells: list[str], columns: int) -> str:
    """A row as Markdown writes it."""
    padded = cells + [""] * (columns - len(cells))
    return "| " + " | ".join(padded) + " |"
