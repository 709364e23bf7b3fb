"""Removing vectors from the cache that no chunk refers to any more.

What must stay true: a vector in use is never removed. One that is not in use stays for a while, because
texts come back (undo, branch switches), up to a share of the cache and an age.
"""

from __future__ import annotations

import math
from typing import cast

from ragd.store.sqlite import Database, batches, marks
from ragd.store.vector_cache import VectorCache

_PAGE = 500


def prune(cache: VectorCache, catalog: Database, *, now_s: int, max_age_s: int, max_share: float) -> int:
    """Remove unused vectors older than `max_age_s`, then the oldest until at most `max_share` (0..1) of all
    are unused; age 0 removes all of them. Returns how many went. For the writing thread, between commits."""

    def run(database: Database) -> int:
        _mark(database, catalog, now_s)
        return _remove_old(database, now_s - max_age_s) + _remove_excess(database, max_share)

    return cache.attempt(run)


def _mark(database: Database, catalog: Database, now_s: int) -> None:
    """Note for each vector since when it is unused."""
    last = 0
    while True:
        with database.read() as link:
            rows = link.execute(
                "SELECT id, text_hash, unused_since_s FROM vector WHERE id > ? ORDER BY id LIMIT ?",
                (last, _PAGE),
            ).fetchall()
        if not rows:
            return
        last = cast(int, rows[-1][0])
        hashes = [cast(bytes, row[1]) for row in rows]
        with catalog.read() as link:
            used = {
                row[0]
                for row in link.execute(
                    f"SELECT DISTINCT text_hash FROM chunk WHERE text_hash IN ({marks(len(hashes))})", hashes
                )
            }
        changed = [(None if row[1] in used else now_s, row[0]) for row in rows if (row[1] in used) != (row[2] is None)]
        if changed:
            with database.write(durable=False) as link:
                link.executemany("UPDATE vector SET unused_since_s = ? WHERE id = ?", changed)


def _remove_old(database: Database, before_s: int) -> int:
    return _remove(
        database,
        "SELECT id FROM vector WHERE unused_since_s <= ? LIMIT ?",
        (before_s,),
        limit=None,
    )


def _remove_excess(database: Database, max_share: float) -> int:
    with database.read() as link:
        total, unused = cast(
            "tuple[int, int]", link.execute("SELECT count(*), count(unused_since_s) FROM vector").fetchone()
        )
    if unused <= max_share * total:
        return 0
    # n of them go so that (unused - n) <= share * (total - n)
    excess = math.ceil((unused - max_share * total) / (1 - max_share))
    return _remove(
        database,
        "SELECT id FROM vector WHERE unused_since_s IS NOT NULL ORDER BY unused_since_s LIMIT ?",
        (),
        limit=min(unused, excess),
    )


def _remove(database: Database, select: str, values: tuple[int, ...], *, limit: int | None) -> int:
    removed = 0
    while limit is None or removed < limit:
        size = _PAGE if limit is None else min(_PAGE, limit - removed)
        with database.write(durable=False) as link:
            ids = [cast(int, row[0]) for row in link.execute(select, (*values, size)).fetchall()]
            for batch in batches(ids):
                link.execute(f"DELETE FROM vector WHERE id IN ({marks(len(batch))})", batch)
        removed += len(ids)
        if len(ids) < size:
            break
    return removed
