"""Finding chunks by their vectors: the nearest ones that are live in the snapshot and meet the condition.

What must stay true: never fewer than `depth` while more exist. The approximate index is asked for more and
more; where a condition leaves few chunks, or the index runs dry, the cached vectors are scored exactly
instead.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from ragd.store.filters import Condition
from ragd.store.snapshot import Snapshot
from ragd.store.types import Generation, VectorIndex
from ragd.store.vector_cache import VectorCache

EXACT_CHUNKS = 4_000
"""Up to this many chunks are scored exactly: reading that many vectors takes about as long as one filtered
query of the index at 100,000 rows, and the answer is certain."""

MOST_ASKED = 4_096
"""How many rows the index is asked for at most before the cached vectors are streamed instead."""

Vector = npt.NDArray[np.float32]
Scored = list[tuple[str, float]]
"""Chunk ids with their cosine similarity (-1..1), best first."""


def nearest(
    snapshot: Snapshot,
    index: VectorIndex,
    cache: VectorCache,
    generation: Generation,
    query: Vector,
    depth: int,
    condition: Condition,
) -> Scored:
    """The `depth` nearest live chunks that meet the condition; fewer only when there are fewer.

    `query` has shape (dimension,) and unit length. Ties are broken by id. Raises StoreError.
    """
    if next(_candidates(snapshot, condition), None) is None:
        return []  # the first collection may not even exist yet
    if condition.is_selective:
        few = list(islice(_candidates(snapshot, condition), EXACT_CHUNKS + 1))
        if len(few) <= EXACT_CHUNKS:
            scored, missing = _score(cache, generation, query, few)
            if not missing:
                return _best(scored, depth)
    found = _from_index(snapshot, index, generation, query, depth, condition)
    if len(found) >= depth or len(list(islice(_candidates(snapshot, condition), depth))) == len(found):
        return found[:depth]
    # What the cache has no vector for can only be known from the index, so its answers stay in the race.
    best = dict(found)
    for block in _blocks(snapshot, condition):
        scored, _ = _score(cache, generation, query, block)
        best = dict(_best([*best.items(), *(pair for pair in scored if pair[0] not in best)], depth))
    return _best(list(best.items()), depth)


def meeting(snapshot: Snapshot, ids: Sequence[str], condition: Condition) -> set[str]:
    """Those of the ids that are live in the snapshot and meet the condition."""
    sql = (
        "SELECT chunk.id FROM chunk JOIN file ON file.id = chunk.file_id "
        f"WHERE {condition.sql} AND chunk.id IN (SELECT value FROM json_each(?))"
    )
    return {str(row[0]) for row in snapshot.execute(sql, (*condition.bindings, json.dumps(ids)))}


def _from_index(
    snapshot: Snapshot,
    index: VectorIndex,
    generation: Generation,
    query: Vector,
    depth: int,
    condition: Condition,
) -> Scored:
    """What the index finds, best first: at least `depth` unless it has no more, or was asked for the most."""
    asked = depth * 4 if condition.is_selective else depth + max(16, depth // 4)
    while True:
        rows = index.query(generation.collection, query, asked)
        passing = meeting(snapshot, [chunk_id for chunk_id, _ in rows], condition)
        found = _best([(chunk_id, score) for chunk_id, score in rows if chunk_id in passing], len(rows))
        if len(found) >= depth or len(rows) < asked or asked >= MOST_ASKED:
            return found
        asked = min(asked * 4, MOST_ASKED)


def _candidates(snapshot: Snapshot, condition: Condition) -> Iterator[tuple[str, bytes]]:
    """(id, hash of the embedded text) of every chunk that meets the condition and can have a vector."""
    # CROSS JOIN keeps files outside: most conditions are about them, and rows of chunks are long.
    sql = (
        "SELECT chunk.id, chunk.text_hash FROM file CROSS JOIN chunk ON chunk.file_id = file.id "
        f"WHERE {condition.sql} AND chunk.vector <> 2"
    )
    for chunk_id, text_hash in snapshot.execute(sql, condition.bindings):
        yield str(chunk_id), bytes(text_hash)


def _blocks(snapshot: Snapshot, condition: Condition) -> Iterator[list[tuple[str, bytes]]]:
    candidates = _candidates(snapshot, condition)
    while block := list(islice(candidates, EXACT_CHUNKS)):
        yield block


def _score(
    cache: VectorCache, generation: Generation, query: Vector, chunks: Sequence[tuple[str, bytes]]
) -> tuple[Scored, int]:
    """Cosine of every chunk with a cached vector, in no order, and how many have none."""
    keys, vectors = cache.of(generation.identity, generation.dimension).matrix([key for _, key in chunks])
    cosine = dict(zip(keys, np.clip(vectors @ query, -1.0, 1.0).tolist(), strict=True))
    scored = [(chunk_id, cosine[key]) for chunk_id, key in chunks if key in cosine]
    return scored, len(chunks) - len(scored)


def _best(scored: Scored, depth: int) -> Scored:
    return heapq.nsmallest(depth, scored, key=lambda pair: (-pair[1], pair[0]))
