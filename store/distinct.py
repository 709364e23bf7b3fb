"""From a ranking to hits that differ: no text twice, no lines twice; pure.

What must stay true: equal texts become one hit that names the other places; no two hits of one file cover the
same lines by more than half; and no source text stands in two hits. What is left out makes room for the next
best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ragd.store.passages import Passage, join_chunks
from ragd.store.rows import ChunkRow

MOST_OVERLAP = 0.5
"""Share of the shorter of two line ranges of one file that both may cover."""

Widen = Callable[[ChunkRow], Sequence[ChunkRow]]
"""The chunks of the same file that a hit shows together with its own, itself among them, in order."""


@dataclass(slots=True)
class Pick:
    """One hit to be: its chunk, what it shows, and where else the same text stands."""

    row: ChunkRow
    score: float
    passage: Passage
    twins: list[ChunkRow] = field(default_factory=list)


def pick_distinct(ranked: Iterable[Sequence[tuple[ChunkRow, float]]], k: int, widen: Widen) -> list[Pick]:
    """The first k of a ranking that differ, best first; those of the same block with the text of a pick
    become its twins. The ranking comes in blocks, none of which is asked for after the k are found."""
    picks: list[Pick] = []
    by_text: dict[str, Pick] = {}
    shown: set[str] = set()
    for block in ranked:
        for row, score in block:
            text = row.text.strip()
            if (twin := by_text.get(text)) is not None:
                twin.twins.append(row)
                continue
            if len(picks) == k or row.id in shown:
                continue
            passage = join_chunks(_unshown_around(row, widen(row), shown))
            if any(pick.row.file_id == row.file_id and too_close(pick.passage, passage) for pick in picks):
                continue
            by_text[text] = pick = Pick(row, score, passage)
            picks.append(pick)
            shown.update(passage.ids)
        if len(picks) == k:
            break
    return picks


def too_close(one: Passage, other: Passage) -> bool:
    """True when two passages of one file share more than half of the shorter one's lines.

    One line that two passages share a border on, or that holds both, is no overlap if their bytes are apart.
    """
    common = min(one.end_line, other.end_line) - max(one.start_line, other.start_line) + 1
    if common <= 0:
        return False
    apart = one.stop <= other.start or other.stop <= one.start
    if common == 1 and apart:
        return False
    shorter = min(one.end_line - one.start_line, other.end_line - other.start_line) + 1
    return common / shorter > MOST_OVERLAP


def _unshown_around(row: ChunkRow, rows: Sequence[ChunkRow], shown: set[str]) -> list[ChunkRow]:
    """The run of chunks around `row` that no earlier hit shows."""
    position = next((number for number, other in enumerate(rows) if other.id == row.id), None)
    if position is None:
        return [row]
    first, last = position, position
    while first > 0 and rows[first - 1].id not in shown:
        first -= 1
    while last + 1 < len(rows) and rows[last + 1].id not in shown:
        last += 1
    return list(rows[first : last + 1])
