"""CSV and TSV to a table: its dialect, its header, one block a record.

Must stay true: the dialect is decided over records, never over physical lines, and a record's block is its exact span.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice

from ragd.chunkers.document import Block, Document
from ragd.chunkers.parsers.csv_records import Record, cells_of, records_of

DELIMITERS = ",;\t|"
WIDE_ROW_CHARS = 150
"""A record longer than this gets a child block for each cell, so that it can be cut between them."""

_SAMPLE_CHARS = 200_000
_SAMPLE_RECORDS = 200
_MAX_PREAMBLE = 20
_SURE_SHARE = 0.9
_VALUE = re.compile(
    r"""[-+(]?[$€£¥]?\s?[\d.,'\u00a0\u202f ]*\d\s?[%)]?      # a number, a price, a share
    |\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?:[T ][\d:.+Zz-]*)?     # a date, perhaps with a time
    |\d{1,2}:\d{2}(?::\d{2})?
    |true|false|null|none|n/a|nan""",
    re.VERBOSE | re.IGNORECASE,
)


def parse(text: str, *, name: str) -> Document:
    """A table: `metadata` holds its columns, delimiter and number of rows.

    Blocks: `table_note` for lines above the header, `table_header`, and a `table_row` each whose `text` is the row as
    `column: value; ...`; those of wide rows have `table_cell` children rendered alike.
    """
    is_tsv = name.lower().endswith((".tsv", ".tab"))
    delimiter = delimiter_of(text, preferred="\t" if is_tsv else ",")
    sample = list(_sample(text, delimiter))
    notes, header = _header_of(sample)
    columns = [" ".join(value.split()) for value in header.values] if header else []
    document = Document(text=text, type="tsv" if is_tsv else "csv")
    above_until = header.start if header else sample[notes].start if notes else 0
    rows = 0
    for record in records_of(text, delimiter):
        if header is not None and record.start == header.start:
            row = Block(kind="table_header", start=record.start, end=record.end, text="; ".join(filter(None, columns)))
        elif record.start < above_until:
            row = Block(kind="table_note", start=record.start, end=record.end, text=text[record.start : record.end])
        else:
            row = _row(text, delimiter, record, columns)
            rows += bool(row.text)
        if row.text:
            document.blocks.append(row)
        else:  # nothing but delimiters and quotes
            document.dropped.append((record.start, record.end, "markup"))
    document.metadata = {"columns": list(columns), "delimiter": delimiter, "rows": rows}
    return document


def delimiter_of(text: str, *, preferred: str) -> str:
    """The delimiter under which the first records agree best on a number of columns greater than one, and under
    which the quotes enclose whole cells."""
    best, best_score = preferred, (0.0, 0.0, 0, False)
    for delimiter in DELIMITERS:
        sample = list(_sample(text, delimiter))
        counts = Counter(len(record.values) for record in sample)
        wide = {columns: times for columns, times in counts.items() if columns > 1}
        if not wide:
            continue
        columns = max(wide, key=lambda width: (wide[width], width))
        agreement = wide[columns] / sum(counts.values())
        if delimiter == preferred == "\t" and agreement >= _SURE_SHARE:
            return delimiter  # the name of the file says so
        well_quoted = sum(not any(value.startswith('"') for value in record.values) for record in sample) / len(sample)
        score = (round(agreement, 1), round(well_quoted, 1), columns, delimiter == preferred)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _sample(text: str, delimiter: str) -> Iterator[Record]:
    records = records_of(text, delimiter, 0, min(len(text), _SAMPLE_CHARS))
    return islice((record for record in records if _inked(record)), _SAMPLE_RECORDS)


def _inked(record: Record) -> bool:
    return any(value and not value.isspace() for value in record.values)


def _header_of(sample: list[Record]) -> tuple[int, Record | None]:
    """How many records stand above the table, and its header, if the first record of full width is one."""
    if not sample:
        return 0, None
    widths = Counter(len(record.values) for record in sample)
    width = max(widths, key=lambda columns: (widths[columns], columns))
    notes = 0
    while notes < min(len(sample), _MAX_PREAMBLE) and width > 1 and _is_note(sample[notes]):
        notes += 1
    if notes >= min(len(sample), _MAX_PREAMBLE):
        notes = 0
    first, below = sample[notes], sample[notes + 1 :]
    return notes, first if _is_header(first, below) else None


def _is_note(record: Record) -> bool:
    """A title, a comment or an empty-celled line above the table."""
    return sum(1 for value in record.values if value.strip()) < 2 or record.values[0].startswith("#")


def _is_header(first: Record, below: list[Record]) -> bool:
    """Names, not values: no number or date among them, none twice, and none that the rows use as a value."""
    names = [value.strip() for value in first.values if value.strip()]
    if not names or len(set(names)) < len(names) or any(_VALUE.fullmatch(name) for name in names):
        return False
    for column, name in enumerate(first.values):
        used = {record.values[column].strip() for record in below if column < len(record.values)}
        if name.strip() and name.strip() in used:
            return False
    return True


def _row(text: str, delimiter: str, record: Record, columns: list[str]) -> Block:
    rendered = "; ".join(filter(None, map(_labelled, record.values, _names(columns))))
    block = Block(kind="table_row", start=record.start, end=record.end, text=rendered)
    if record.end - record.start > WIDE_ROW_CHARS:
        names = _names(columns)
        block.children = [
            Block(
                kind="table_cell",
                start=cell.start,
                end=cell.end,
                text=_labelled(cell.value, name),
                symbol=name or None,
            )
            for cell, name in zip(cells_of(text, delimiter, record), names, strict=False)
        ]
    return block


def _names(columns: list[str]) -> Iterator[str]:
    """The column names, and a number for each column that has none, if any has a name."""
    if not columns:
        return iter(lambda: "", None)
    named = (name or f"column {at}" for at, name in enumerate(columns, 1))
    return chain(named, (f"column {at}" for at in range(len(columns) + 1, 1 << 30)))


def _labelled(value: str, name: str) -> str:
    """`name: value`, an empty string for an empty cell; line breaks inside a cell become spaces."""
    value = " ".join(value.split())
    return f"{name}: {value}" if value and name else value
