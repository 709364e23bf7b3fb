"""From a query to hits, inside one generation.

What must stay true: one search sees one moment of the catalog, opened before the vector index is asked; a hit
is live, visible and meets the filters; there are k hits if k distinct ones exist; and when a search could not
be done as asked, `mode_used` and `notice` say so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import Any

from ragd.store.dense import Scored, Vector, nearest
from ragd.store.distinct import Pick, Widen, pick_distinct
from ragd.store.errors import ModelError, ModelLoadingError, StoreError
from ragd.store.filters import Condition, compile_filters
from ragd.store.fusion import fuse
from ragd.store.gate import Place, visible, visible_roots
from ragd.store.hits import MOST_PLACES, hit_fields
from ragd.store.lexical import best_matching, match_terms, telling_terms
from ragd.store.passages import neighbours_of, siblings_of
from ragd.store.rows import CHUNK_SELECT, ChunkRow, chunk_row
from ragd.store.snapshot import Snapshot
from ragd.store.types import Client, Embedder, Filters, RootView, SearchRequest, VectorIndex
from ragd.store.vector_cache import VectorCache

WEIGHTS: Mapping[str, float] = {"dense": 1.0, "lexical": 1.0}
_LEAST_DEPTH = 50
_GROWTH = 4
_LEAST_LOADED = 16


@dataclass(frozen=True, slots=True)
class Model:
    """The embedding model as it stands: loaded, or why it is not, and whether it will be."""

    embedder: Embedder | None = None
    reason: str = "the embedding model is still loading"
    is_loading: bool = True


@dataclass(frozen=True, slots=True)
class _Scores:
    """The raw scores of the two lists, by chunk id."""

    dense: Mapping[str, float]
    lexical: Mapping[str, float]


class Searcher:
    """Thread-safe: every search works on a snapshot of its own."""

    def __init__(
        self,
        open_snapshot: Callable[[], AbstractContextManager[Snapshot]],
        index: Callable[[], VectorIndex],
        cache: VectorCache,
        *,
        index_failed: Callable[[StoreError], None] = lambda _: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`open_snapshot` registers the query before it opens the catalog, so that nothing is deleted from
        the index under it. `index` gives the one now open, or raises StoreError. `index_failed` is told when
        the index could not answer and words alone had to."""
        self._open_snapshot = open_snapshot
        self._index = index
        self._cache = cache
        self._index_failed = index_failed
        self._clock = clock

    def search(
        self,
        request: SearchRequest,
        client: Client,
        roots: Mapping[str, RootView],
        model: Model,
        *,
        pending: int = 0,
    ) -> dict[str, Any]:
        """The answer to `search` of the outer contract.

        Raises FilterError; ModelLoadingError or ModelError when mode is dense and the model cannot be asked;
        StoreError when the store cannot be reached.
        """
        began = self._clock()
        notices: list[str] = []
        wants_dense = request.mode != "lexical" and bool(request.query.strip())
        if wants_dense and model.embedder is None:
            _without_model(request, model.reason, notices, is_loading=model.is_loading)
        # Before the snapshot opens: nothing should wait for a query longer than needed.
        vector = model.embedder.embed_query(request.query)[0] if wants_dense and model.embedder else None
        seen = visible_roots(client, roots)
        with self._open_snapshot() as snapshot:
            live = snapshot.live
            if vector is not None and live is not None and _identity(model) != live.identity:
                _without_model(request, _rebuilding(snapshot), notices, is_loading=True)
                vector = None
            hits, mode_used = self._hits(snapshot, request, client, seen, vector, notices)
            generation = None if live is None else live.id
        notices += _notices_on(request, generation, hits, seen)
        return {
            "query": request.query,
            "hits": hits,
            "mode_used": mode_used,
            "notice": "; ".join(notices) or None,
            "generation": generation,
            "pending": pending,
            "seconds": round(self._clock() - began, 6),
        }

    def _hits(
        self,
        snapshot: Snapshot,
        request: SearchRequest,
        client: Client,
        roots: Mapping[str, RootView],
        vector: Vector | None,
        notices: list[str],
    ) -> tuple[list[dict[str, Any]], str]:
        """The hits, and the mode that found them."""
        condition = compile_filters(snapshot, request.filters, roots)
        live = snapshot.live
        every_term = match_terms(request.query) if request.mode != "dense" and live is not None else []
        terms = telling_terms(snapshot, live, every_term) if live is not None else []
        depth = max(_LEAST_DEPTH, request.k * _GROWTH)
        while True:
            mode = "lexical" if vector is None and request.mode != "dense" else request.mode
            try:
                scores = self._ranked(snapshot, vector, terms, depth, condition)
            except StoreError as error:
                if request.mode == "dense" or vector is None:
                    raise
                self._index_failed(error)
                notices.append(f"the vector index could not answer, so only words were matched ({error})")
                vector = None
                continue
            picks = _pick(snapshot, request, client, roots, scores)
            exhausted = len(scores.dense) < depth and len(scores.lexical) < depth
            if len(picks) >= request.k:
                break
            if not exhausted:
                depth *= _GROWTH
            elif vector is None and len(terms) < len(every_term):
                terms = every_term
            else:
                break
        elsewhere = _same_text(snapshot, picks, condition)
        return [
            hit_fields(
                pick,
                client,
                roots,
                [*pick.twins, *elsewhere.get(pick.row.text_hash, ())],
                dense=scores.dense.get(pick.row.id),
                lexical=scores.lexical.get(pick.row.id),
            )
            for pick in picks
        ], mode

    def _ranked(
        self,
        snapshot: Snapshot,
        vector: Vector | None,
        terms: Sequence[str],
        depth: int,
        condition: Condition,
    ) -> _Scores:
        live = snapshot.live
        if live is None:
            return _Scores({}, {})
        dense: Scored = []
        if vector is not None:
            dense = nearest(snapshot, self._index(), self._cache, live, vector, depth, condition)
        return _Scores(dict(dense), dict(best_matching(snapshot, live, terms, depth, condition)))


def _pick(
    snapshot: Snapshot,
    request: SearchRequest,
    client: Client,
    roots: Mapping[str, RootView],
    scores: _Scores,
) -> list[Pick]:
    """The k best by both lists that differ and may be seen."""
    lists = {"dense": list(scores.dense), "lexical": list(scores.lexical)}
    fused = fuse({name: ids for name, ids in lists.items() if ids}, weights=WEIGHTS)

    size = max(_LEAST_LOADED, 2 * request.k)

    def blocks() -> Iterator[list[tuple[ChunkRow, float]]]:
        for start in range(0, len(fused), size):
            block = fused[start : start + size]
            loaded = snapshot.chunks([chunk_id for chunk_id, _ in block])
            found = [(loaded[chunk_id], score) for chunk_id, score in block if chunk_id in loaded]
            yield [(row, score) for row, score in found if visible(client, Place(roots.get(row.root), row.path))]

    return pick_distinct(blocks(), request.k, _widen(snapshot, request.expand))


def _widen(snapshot: Snapshot, expand: str) -> Widen:
    if expand == "neighbours":
        return lambda row: neighbours_of(snapshot, row, 1)
    if expand == "parent":
        return lambda row: siblings_of(snapshot, row)
    return lambda row: [row]


def _same_text(snapshot: Snapshot, picks: Sequence[Pick], condition: Condition) -> dict[bytes, list[ChunkRow]]:
    """Other chunks that meet the condition and are embedded as the same text, by its hash."""
    found: dict[bytes, list[ChunkRow]] = {}
    for pick in picks:
        key = pick.row.text_hash
        sql = f"{CHUNK_SELECT} WHERE chunk.text_hash = ? AND {condition.sql} ORDER BY chunk.rowid LIMIT ?"
        rows = snapshot.execute(sql, (key, *condition.bindings, MOST_PLACES + 1))
        found[key] = [chunk_row(row) for row in rows]
    return found


def _without_model(request: SearchRequest, reason: str, notices: list[str], *, is_loading: bool) -> None:
    """A dense search cannot be answered; a hybrid one is answered by words, and says so."""
    if request.mode == "dense":
        if is_loading:
            raise ModelLoadingError(f"{reason}; ask again in a moment, or with --mode lexical")
        raise ModelError(f"{reason}; until it is mended, ask with --mode lexical")
    notices.append(f"{reason}, so only words were matched")


def _rebuilding(snapshot: Snapshot) -> str:
    """What stands between the loaded model and the live generation."""
    if snapshot.building is None or snapshot.live is None:
        return "the embedding model was changed and everything will be embedded again"
    sql = "SELECT generation, sum(files) FROM tally GROUP BY generation"
    files = {int(generation): int(count) for generation, count in snapshot.execute(sql)}
    done, total = files.get(snapshot.building.id, 0), files.get(snapshot.live.id, 0)
    return f"the embedding model was changed: re-embedding {min(done, total)} of {total} files"


def _identity(model: Model) -> str | None:
    return None if model.embedder is None else model.embedder.identity.fingerprint


def _notices_on(
    request: SearchRequest,
    generation: int | None,
    hits: Sequence[Mapping[str, Any]],
    roots: Mapping[str, RootView],
) -> list[str]:
    notices: list[str] = []
    if not request.query.strip():
        notices.append("the query is empty")
    if generation is None:
        notices.append("nothing is indexed yet")
    elif not hits and (unknown := sorted(set(request.filters.root or ()) - roots.keys())):
        notices.append(f"there is no root {', '.join(unknown)}; there are: {', '.join(sorted(roots))}")
    elif not hits and request.filters != Filters():
        notices.append(f"nothing was found within the filters ({_told(request.filters)})")
    for name in sorted({str(hit["root"]) for hit in hits}):
        root = roots[name]
        if root.state == "unavailable":
            notices.append(f"the folder {root.path} is not available; its hits show what was last indexed")
        elif root.state == "mass_deletion":
            notices.append(f"many files of {root.path} are gone; its hits may show what is no longer there")
    return notices


def _told(filters: Filters) -> str:
    """The filters that were given, for a person who may have mistyped one."""
    told = []
    for name in (field.name for field in fields(filters)):
        value = getattr(filters, name)
        if isinstance(value, tuple):
            told.append(f"{name}: {', '.join(value)}")
        elif value is not None:
            told.append("since" if name == "since_ns" else f"{name}: {value}")
    return "; ".join(told)
