"""Tables: rows embedded as `column: value; ...`, short ones grouped, none cut unless it alone is over the budget.

Must stay true: a row is never parted from its column names; a record that spans several lines stands alone, so that
its lines are its own; the header is a chunk of its own and no row is packed with it.
"""

from __future__ import annotations

from ragd.chunkers.document import Atom, Block, Document, Outline, Region, Unit
from ragd.chunkers.limits import Limits
from ragd.chunkers.splitting import Weigher
from ragd.chunkers.tokens import TokenCounter

GROUP_TOKENS = 150
"""What a chunk of short rows aims at: about five rows of a usual table."""
WHOLE_ROW_TOKENS = 60
"""A row of at least this many tokens is a chunk of its own."""

_CELL_COST = 0.3
_LONGEST_KEY_CHARS = 60
"""A first value longer than this is no name for its row."""


def outline(document: Document, counter: TokenCounter, limits: Limits) -> Outline:
    """A region for the header (and the notes above it), then regions of rows."""
    if not document.blocks:
        return Outline([])
    unit = Unit("table", document.title or "", (), document.blocks[0].start, document.blocks[-1].end)
    head = [block for block in document.blocks if block.kind != "table_row"]
    rows = document.blocks[len(head) :]
    weigher = Weigher(document.text, counter, limits.ceiling_tokens)
    regions = [Region([_head_atom(block) for block in head])] if head else []
    run: list[Atom] = []
    for row, tokens in zip(rows, weigher.weigh_texts([row.text for row in rows]), strict=True):
        alone = tokens >= WHOLE_ROW_TOKENS or _spans_lines(row, document.text)
        is_over = tokens > limits.ceiling_tokens and bool(row.children)
        atoms = _cell_atoms(row, weigher) if is_over else [_row_atom(row)]
        if alone:
            _close(run, regions)
            run = []
            regions.append(Region(atoms))
        else:
            run += atoms
    _close(run, regions)
    return Outline(regions, [unit])


def _close(run: list[Atom], regions: list[Region]) -> None:
    if run:
        regions.append(Region(run, target_tokens=GROUP_TOKENS))


def _spans_lines(row: Block, text: str) -> bool:
    return text.find("\n", row.start, row.end) >= 0 or text.find("\r", row.start, row.end) >= 0


def _head_atom(block: Block) -> Atom:
    return Atom(block.start, block.end, 0.0, "table-schema", split="prose", unit=0)


def _row_atom(row: Block) -> Atom:
    return Atom(row.start, row.end, 0.0, "table-row", rendered=row.text, unit=0)


def _cell_atoms(row: Block, weigher: Weigher) -> list[Atom]:
    """The cells of a row that is over the budget, each with the delimiter after it, under the row's first value.

    A cell that alone is over the budget is cut as it stands: its column's name goes into the prefix of every piece.
    """
    weights = weigher.weigh_texts([cell.text for cell in row.children])
    key = next((cell for cell in row.children if cell.text), None)
    is_short = key is not None and len(key.text) <= _LONGEST_KEY_CHARS
    lead, lead_from = (key.text, key.start) if key is not None and is_short else ("", -1)
    atoms: list[Atom] = []
    for cell, following, weight in zip(row.children, [*row.children[1:], None], weights, strict=True):
        end = row.end if following is None else following.start
        if not cell.text and atoms:  # an empty cell: its delimiter belongs to the cell before
            atoms[-1].end = end
            continue
        atom = Atom(cell.start, end, _CELL_COST if atoms else 0.0, "table-row", unit=0)
        if weight > weigher.ceiling_tokens:
            name = f"{cell.symbol}:" if cell.symbol else ""
            atom.context = "; ".join(filter(None, [lead if cell is not key else "", name]))
        else:
            atom.rendered = cell.text if following is None else f"{cell.text}; "
            atom.context, atom.context_from = lead, lead_from
        atoms.append(atom)
    return atoms
