"""A hit as it goes out: the fields of the outer contract.

What must stay true: every hit names its place exactly (absolute path, lines, page or locator) and says when
it may be out of date; a client whose sight is limited by labels gets no raw scores, which speak of texts it
may not see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ragd.store.distinct import Pick
from ragd.store.places import place_fields
from ragd.store.rows import ChunkRow
from ragd.store.types import Client, RootView

MOST_PLACES = 20
"""Other places of an equal text that a hit names."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def hit_fields(
    pick: Pick,
    client: Client,
    roots: Mapping[str, RootView],
    elsewhere: Sequence[ChunkRow],
    *,
    dense: float | None,
    lexical: float | None,
) -> dict[str, Any]:
    """`elsewhere`: chunks with the same text, visible to the client. `dense` is a cosine (-1..1), `lexical`
    BM25."""
    row, passage = pick.row, pick.passage
    root = roots[row.root]
    raw = client.labels is None
    places = {(twin.root, twin.path, twin.start_line): twin for twin in elsewhere if twin.id != row.id}
    return {
        "id": row.id,
        **place_fields(root, row.path),
        "type": row.type,
        "kind": row.kind,
        "title": row.title,
        "section": list(row.section),
        "start_line": passage.start_line,
        "end_line": passage.end_line,
        "page": row.page,
        "locator": row.locator,
        "url": None,
        "language": row.language,
        "symbol": row.symbol,
        "modified": rfc3339(row.mtime_ns),
        "labels": sorted(root.labels),
        "tags": list(row.tags),
        "score": pick.score,
        "scores": {"dense": dense if raw else None, "lexical": lexical if raw else None},
        "text": passage.text,
        "ids": list(passage.ids),
        "stale": is_stale(row, root),
        "also_at": [_other_place(twin, roots[twin.root]) for twin in list(places.values())[:MOST_PLACES]],
    }


def is_stale(row: ChunkRow, root: RootView) -> bool:
    """True when the text may not be what stands in the file now."""
    return row.stale or root.doubts(row.path, row.mtime_ns)


def rfc3339(time_ns: int) -> str | None:
    """The time in UTC to the microsecond; None where the calendar ends (years 1 to 9999)."""
    try:
        return (_EPOCH + timedelta(microseconds=time_ns // 1_000)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return None


def _other_place(row: ChunkRow, root: RootView) -> dict[str, Any]:
    return {
        "id": row.id,
        **place_fields(root, row.path),
        "start_line": row.start_line,
        "end_line": row.end_line,
        "page": row.page,
        "locator": row.locator,
    }
