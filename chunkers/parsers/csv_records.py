"""Delimited text to records with exact character spans.

Must stay true: records tile the text in order, whatever the quoting; the time is linear, a quote that is never closed
included. The rules are RFC 4180's; where a file breaks them, a quote is taken as an ordinary character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

_LINE_END = re.compile(r"[\r\n]")
_QUOTED_RUN = re.compile(r'(?:[^"]++|"")*+')
_MAX_WASTE = 4
"""Failed searches for closing quotes may cost this many times the text; after that quotes mean nothing."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One value and the span it stands at, its quotes included."""

    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Record:
    """One row: its values, and its span without the newline that ends it."""

    start: int
    end: int
    values: list[str]


def records_of(text: str, delimiter: str, start: int = 0, stop: int | None = None) -> Iterator[Record]:
    """The records of `text[start:stop]`; a line without any character is none."""
    stop = len(text) if stop is None else stop
    waste_left = _MAX_WASTE * (stop - start) + 1000
    at = start
    while at < stop:
        line_end = _LINE_END.search(text, at, stop)
        end = line_end.start() if line_end is not None else stop
        if waste_left <= 0 or text.find('"', at, end) < 0:
            values = text[at:end].split(delimiter)
        else:
            cells, waste_left = _cells(text, delimiter, at, stop, waste_left)
            end = cells[-1].end
            values = [cell.value for cell in cells]
        if end > at:
            yield Record(at, end, values)
        at = end + (2 if text.startswith("\r\n", end) else 1)


def cells_of(text: str, delimiter: str, record: Record) -> list[Cell]:
    """The cells of one record with their spans."""
    return _cells(text, delimiter, record.start, record.end, _MAX_WASTE * (record.end - record.start) + 1000)[0]


def _cells(text: str, delimiter: str, start: int, stop: int, waste_left: int) -> tuple[list[Cell], int]:
    """The cells of the record that begins at `start`, and what is left of the allowed waste."""
    quoted, unquoted = _patterns(delimiter)
    cells: list[Cell] = []
    at = start
    while True:
        match = quoted.match(text, at, stop) if waste_left > 0 and text.startswith('"', at, stop) else None
        if match is not None:
            cells.append(Cell(match.group(1).replace('""', '"'), at, match.end()))
        else:
            if text.startswith('"', at, stop):
                waste_left -= _searched_in_vain(text, at, stop)
            match = unquoted.match(text, at, stop)
            cells.append(Cell(match.group() if match else "", at, match.end() if match else at))
        at = cells[-1].end
        if at >= stop or text[at] != delimiter:
            return cells, waste_left
        at += 1


def _searched_in_vain(text: str, at: int, stop: int) -> int:
    """How far a search for the end of the quoted cell at `at` had to look."""
    run = _QUOTED_RUN.match(text, at + 1, stop)
    return run.end() - at if run is not None else 1


@cache
def _patterns(delimiter: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A quoted cell, closed where a cell may end; a cell without quotes."""
    escaped = re.escape(delimiter)
    return (
        re.compile(rf'"((?:[^"]++|"")*+)"(?=[{escaped}\r\n]|\Z)'),
        re.compile(rf"[^{escaped}\r\n]*"),
    )
