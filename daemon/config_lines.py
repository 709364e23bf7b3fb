"""On which line of the configuration file a key stands.

What must stay true: pure, and only ever used to point: a file that is laid out in a way this does not read
(dotted keys, inline tables) gets no line, never a wrong answer about what is in it.
"""

from __future__ import annotations

import re

Place = tuple[str | int, ...]
"""Where a value stands: ("root", 0, "labels")."""

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"""\s*["']?([^"'=\s]+)["']?\s*=""")


def lines_of(text: str) -> dict[Place, int]:
    """The 1-based line of every table and of every key that has a line of its own."""
    lines: dict[Place, int] = {}
    counts: dict[Place, int] = {}
    table: Place = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _enter(header[2], header[1] == "[[", counts)
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, key[1]), number)
    return lines


def _enter(name: str, is_array: bool, counts: dict[Place, int]) -> Place:
    parts = [part.strip().strip("\"'") for part in name.split(".")]
    place: Place = ()
    for depth, part in enumerate(parts):
        place = (*place, part)
        if is_array and depth == len(parts) - 1:
            counts[place] = counts.get(place, -1) + 1
        if place in counts:
            place = (*place, counts[place])
    return place
