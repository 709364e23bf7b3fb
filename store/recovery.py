"""Start-up and repair: whatever state a kill, a lost disk or a restored backup left, the index equals the
catalog.

What must stay true: the catalog decides which ids are live. Rows that the vector index lacks are written
again from the vector cache without embedding; files whose vectors are lost are marked to be indexed again;
a damaged database or index is set aside, never deleted, and a person is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Protocol, runtime_checkable

from ragd.store.diff import row_metadata
from ragd.store.errors import DamagedError, InterruptedCommitError
from ragd.store.rows import CHUNK_SELECT, ChunkRow, chunk_row
from ragd.store.sqlite import Connection, Database, batches, marks
from ragd.store.types import Generation, VectorIndex, VectorRow
from ragd.store.vector_cache import ModelVectors

_PAGE = 500
_IDS_A_PAGE = 5_000


@runtime_checkable
class RepairableIndex(Protocol):
    """A vector index that keeps files which can be damaged."""

    def check(self, collection: str, expected: int | None = None, *, vectors: bool = False) -> list[str]:
        """What is wrong with the collection; `vectors`: read every vector."""

    def set_aside(self, reason: str) -> Path:
        """Move its files away, say where to, and go on with an empty index."""


@runtime_checkable
class HurriedIndex(Protocol):
    """A vector index whose calls can take long."""

    def end_soon(self) -> None:
        """From any thread: every call that waits or comes raises StoreError."""


@dataclass(slots=True)
class Comparison:
    """What was out of step between one generation and its collection. Without repair nothing is changed."""

    missing: int = 0
    """Live chunks whose row in the vector index is not there."""
    uncertain: int = 0
    """Live chunks whose row is there and may be out of date: a commit that was to replace it did not end."""
    rewritten: int = 0
    extra: int = 0
    """Rows in the vector index that belong to no live chunk."""
    lost_files: list[tuple[str, bytes]] = field(default_factory=list)
    """Files with a chunk that has no vector anywhere: marked to be indexed again."""

    @property
    def ok(self) -> bool:
        return not (self.missing or self.uncertain or self.extra)


def folder_fingerprint(folder: Path) -> str:
    """Changes whenever a file in the folder was written; "" when there is no folder."""
    if not folder.is_dir():
        return ""
    digest = blake2b(digest_size=16)
    for file in sorted(folder.rglob("*")):
        stat = file.lstat()
        if not file.is_dir():
            line = f"{file.relative_to(folder)}\0{stat.st_size}\0{stat.st_mtime_ns}\0{stat.st_ino}\n"
            digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def compare(
    catalog: Database,
    index: VectorIndex,
    generation: Generation,
    vectors: ModelVectors,
    *,
    documents: bool,
    repair: bool,
    vectors_too: bool,
    steps: Callable[[str], None],
    stop: Callable[[], bool],
) -> Comparison:
    """Compare a collection with the live chunks, by id, in pages; with `repair`, make it equal.

    `vectors_too`: rows can all be there and vectors be missing, so every vector is read; DamagedError if
    so. Ids that are pending are left to their queries. For the one writing thread.
    """
    result = Comparison()
    index.create(generation.collection, generation.dimension)
    if vectors_too and isinstance(index, RepairableIndex):
        problems = index.check(generation.collection, vectors=True)
        if problems:
            raise DamagedError("; ".join(problems))
    with catalog.scratch() as link:
        if repair and not _expected(link, generation) and index.count(generation.collection):
            # Nothing of it is wanted: a new collection is better than tombstones for every row.
            result.extra = index.count(generation.collection)
            index.drop(generation.collection)
            index.create(generation.collection, generation.dimension)
        _note_ids(link, index, generation, stop)
        for ids in _extra(link, generation):
            _check_stop(stop)
            result.extra += len(ids)
            if repair:
                index.delete(generation.collection, ids)
                steps("extra deleted")
        for chunks in _absent(link, generation):
            _check_stop(stop)
            result.missing += len(chunks)
            if repair:
                _write_again(catalog, index, generation, vectors, chunks, documents, result)
                steps("written again")
        for chunks in _uncertain(link, generation):
            result.uncertain += len(chunks)
            if repair:
                _write_again(catalog, index, generation, vectors, chunks, documents, result)
                steps("written again")
    return result


def _expected(link: Connection, generation: Generation) -> bool:
    """Whether any of its rows is wanted, or still needed by a query."""
    row = link.execute(
        "SELECT EXISTS (SELECT 1 FROM chunk WHERE generation = ?1) OR EXISTS (SELECT 1 FROM pending WHERE"
        " generation = ?1)",
        (generation.id,),
    ).fetchone()
    return row != (0,)


def _check_stop(stop: Callable[[], bool]) -> None:
    if stop():
        raise InterruptedCommitError("asked to stop while index and catalog were being compared")


def _note_ids(link: Connection, index: VectorIndex, generation: Generation, stop: Callable[[], bool]) -> None:
    """Every id of the collection into a temporary table: a million of them need no memory."""
    link.execute("CREATE TEMP TABLE noted (id TEXT PRIMARY KEY) WITHOUT ROWID")
    page: list[tuple[str]] = []
    for key in index.ids(generation.collection):
        page.append((key,))
        if len(page) == _IDS_A_PAGE:
            _check_stop(stop)
            _note(link, page)
            page = []
    _note(link, page)


def _note(link: Connection, page: list[tuple[str]]) -> None:
    link.execute("BEGIN")
    link.executemany("INSERT OR IGNORE INTO temp.noted VALUES (?)", page)
    link.execute("COMMIT")


def _extra(link: Connection, generation: Generation) -> Iterator[list[str]]:
    return _pages(
        link,
        "SELECT id FROM temp.noted WHERE id > ?"
        " AND NOT EXISTS (SELECT 1 FROM chunk WHERE generation = ? AND chunk.id = noted.id AND vector <> 2)"
        " AND NOT EXISTS (SELECT 1 FROM pending WHERE generation = ? AND pending.id = noted.id)"
        " ORDER BY id LIMIT ?",
        (generation.id, generation.id),
    )


def _absent(link: Connection, generation: Generation) -> Iterator[list[ChunkRow]]:
    """Live chunks whose row is not there. Goes along an index that holds all it reads."""
    ids = _pages(
        link,
        "SELECT id FROM chunk WHERE id > ? AND generation = ?"
        " AND NOT EXISTS (SELECT 1 FROM temp.noted WHERE noted.id = chunk.id) ORDER BY id LIMIT ?",
        (generation.id,),
    )
    return _chunks(link, generation, ids)


def _uncertain(link: Connection, generation: Generation) -> Iterator[list[ChunkRow]]:
    """Live chunks whose row is there but may be that of another version: a commit was about to replace it."""
    ids = _pages(
        link,
        "SELECT id FROM chunk WHERE id > ? AND generation = ? AND vector = 0"
        " AND EXISTS (SELECT 1 FROM temp.noted WHERE noted.id = chunk.id) ORDER BY id LIMIT ?",
        (generation.id,),
    )
    return _chunks(link, generation, ids)


def _chunks(link: Connection, generation: Generation, pages: Iterator[list[str]]) -> Iterator[list[ChunkRow]]:
    for ids in pages:
        rows = link.execute(
            CHUNK_SELECT + f" WHERE chunk.generation = ? AND chunk.id IN ({marks(len(ids))}) AND chunk.vector <> 2",
            (generation.id, *ids),
        ).fetchall()
        if rows:
            yield [chunk_row(row) for row in rows]


def _pages(link: Connection, sql: str, values: tuple[int, ...]) -> Iterator[list[str]]:
    """Ids in order, a page at a time; the statement takes the last id, the values and the limit."""
    after = ""
    while page := [str(row[0]) for row in link.execute(sql, (after, *values, _PAGE)).fetchall()]:
        yield page
        after = page[-1]


def _write_again(
    catalog: Database,
    index: VectorIndex,
    generation: Generation,
    vectors: ModelVectors,
    chunks: list[ChunkRow],
    documents: bool,
    result: Comparison,
) -> None:
    found = vectors.get_many([chunk.text_hash for chunk in chunks])
    here = [chunk for chunk in chunks if chunk.text_hash in found]
    lost = [chunk for chunk in chunks if chunk.text_hash not in found]
    index.upsert(
        generation.collection,
        [
            VectorRow(
                chunk.id,
                found[chunk.text_hash],
                row_metadata(chunk.root, chunk.path, chunk.type, chunk.kind, chunk.title, chunk.section),
                chunk.embedded_text if documents else None,
            )
            for chunk in here
        ],
    )
    with catalog.write(durable=False) as link:
        for state, group in ((1, here), (0, lost)):
            link.executemany("UPDATE chunk SET vector = ? WHERE rowid = ?", [(state, chunk.rowid) for chunk in group])
        # An empty recipe is no file's recipe: the plan indexes the file again.
        file_ids = sorted({chunk.file_id for chunk in lost})
        for batch in batches(file_ids):
            link.execute(f"UPDATE file SET recipe = '', trusted = 0 WHERE id IN ({marks(len(batch))})", batch)
    result.rewritten += len(here)
    result.lost_files += sorted({(chunk.root, chunk.path) for chunk in lost} - set(result.lost_files[-_PAGE:]))


def drop_unknown(index: VectorIndex, known: set[str], prefix: str) -> int:
    """Drop collections with this prefix that no generation has: a lost catalog left them behind."""
    unknown = [name for name in index.collections() if name.startswith(prefix) and name not in known]
    for name in unknown:
        index.drop(name)
    return len(unknown)
