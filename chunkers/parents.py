"""Parents: the real unit each chunk belongs to.

What must stay true: a parent's span contains the spans of its chunks. Where the document has no unit around a chunk,
the stretch between two anchors is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ragd.chunkers.decode import Decoded
from ragd.chunkers.document import Unit
from ragd.chunkers.ids import IdMaker
from ragd.chunkers.packing import Run
from ragd.chunkers.records import Parent


class ParentMaker:
    """Finds the owner of each run and makes the records of those that own something."""

    def __init__(self, units: Sequence[Unit], maps: Decoded, ids: IdMaker) -> None:
        self._units = list(units)
        self._outer = _outer_units(units)
        self._maps = maps
        self._ids = ids
        self._made: list[Parent] = []

    def owners(self, runs: Sequence[Run], sections: Sequence[tuple[str, ...]]) -> list[str]:
        """Id of each run's parent, in order of the runs."""
        chosen = [self._innermost(run) for run in runs]
        records: dict[int, Parent] = {
            index: self._record(self._units[index]) for index in sorted({i for i in chosen if i >= 0})
        }
        owners = [records[index].id if index >= 0 else "" for index in chosen]
        for _, group in groupby(
            (i for i, index in enumerate(chosen) if index < 0),
            key=lambda i: (runs[i].region, runs[i].segment),
        ):
            members = list(group)
            start, end = runs[members[0]].atoms[0].start, runs[members[-1]].atoms[-1].end
            path = sections[members[0]]
            segment = self._record(Unit("segment", path[-1] if path else "", path, start, end))
            for member in members:
                owners[member] = segment.id
        return owners

    def parents(self) -> tuple[Parent, ...]:
        """All parents made, in document order, outer before inner."""
        return tuple(sorted(self._made, key=lambda parent: (parent.span[0], -parent.span[1], parent.id)))

    def _innermost(self, run: Run) -> int:
        """The innermost unit around the whole run, or -1."""
        start, end = run.atoms[0].start, run.atoms[-1].end
        index = run.atoms[0].unit
        while index >= 0 and not (self._units[index].start <= start and end <= self._units[index].end):
            index = self._outer[index]
        return index

    def _record(self, unit: Unit) -> Parent:
        record = Parent(
            id=self._ids.parent_id(unit.kind, unit.section, unit.title),
            kind=unit.kind,
            title=unit.title,
            section=unit.section,
            span=(self._maps.byte_at(unit.start), self._maps.byte_at(unit.end)),
            start_line=self._maps.line_at(unit.start),
            end_line=self._maps.line_at(max(unit.start, unit.end - 1)),
        )
        self._made.append(record)
        return record


def _outer_units(units: Sequence[Unit]) -> list[int]:
    """For each unit the index of the smallest one around it, or -1; units nest or are apart."""
    outer = [-1] * len(units)
    open_units: list[int] = []
    for index in sorted(range(len(units)), key=lambda i: (units[i].start, -units[i].end, i)):
        while open_units and units[open_units[-1]].end < units[index].end:
            open_units.pop()
        outer[index] = open_units[-1] if open_units else -1
        open_units.append(index)
    return outer
