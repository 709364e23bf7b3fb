"""Model identity and hash of the embedded text -> vector, in a SQLite file of its own.

What must stay true: a cache is never fatal. A damaged file is set aside and started anew, a vector that
cannot be one counts as missing; then texts are embedded again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from ragd.store.errors import DamagedError
from ragd.store.sqlite import Database, batches, marks, migrations_of, set_aside
from ragd.store.types import Vectors

_PAGE_BYTES = 8192
"""Five vectors of 384 dimensions on a page; two on a page of 4 KiB."""

_UNIT_TOLERANCE = 1e-3
_Result = TypeVar("_Result")


def usable(vectors: Vectors) -> npt.NDArray[np.bool_]:
    """For each row whether it is finite and of unit length."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
        return np.asarray(np.abs(lengths - 1.0) <= _UNIT_TOLERANCE)


class VectorCache:
    """Thread-safe. Give `stamp` names for folders of damaged files (a time, for people)."""

    def __init__(self, path: Path, stamp: Callable[[], str]) -> None:
        self._path = path
        self._stamp = stamp
        self._lock = threading.Lock()
        self.problems: list[str] = []
        """What a person should know of: files that were set aside."""
        try:
            self._database = self._open()
        except DamagedError:
            self._set_aside()
            self._database = self._open()

    def _open(self) -> Database:
        return Database(self._path, migrations_of("vectors"), page_bytes=_PAGE_BYTES)

    def _set_aside(self) -> None:
        target = set_aside(self._path, self._stamp())
        self.problems.append(
            f"the vector cache was damaged and set aside as {target}; texts are embedded again where needed"
        )

    def attempt(self, action: Callable[[Database], _Result]) -> _Result:
        """Do it; once more on an empty cache if the file turns out to be damaged."""
        database = self._database
        try:
            return action(database)
        except DamagedError:
            with self._lock:
                if self._database is database:  # else another thread has already started anew
                    database.close()
                    self._set_aside()
                    self._database = self._open()
            return action(self._database)

    def of(self, fingerprint: str, dimension: int) -> ModelVectors:
        """The vectors of one model identity."""
        return ModelVectors(self, fingerprint, dimension)

    def meta(self, key: str) -> str | None:
        def read(database: Database) -> str | None:
            with database.read() as link:
                row = link.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
            return None if row is None else str(row[0])

        return self.attempt(read)

    def set_meta(self, key: str, value: str) -> None:
        def write(database: Database) -> None:
            with database.write() as link:
                link.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

        self.attempt(write)

    def count(self) -> int:
        """Vectors of all models."""

        def read(database: Database) -> int:
            with database.read() as link:
                row = link.execute("SELECT count(*) FROM vector").fetchone()
            return 0 if row is None else int(str(row[0]))

        return self.attempt(read)

    def close(self) -> None:
        """Idempotent."""
        self._database.close()


class ModelVectors:
    """The cached vectors of one model identity; shape (n, dimension), float32, unit length."""

    def __init__(self, cache: VectorCache, fingerprint: str, dimension: int) -> None:
        self._cache = cache
        self._fingerprint = fingerprint
        self.dimension = dimension

    def matrix(self, hashes: Sequence[bytes]) -> tuple[list[bytes], Vectors]:
        """The hashes that are there, each once and in no certain order, and their vectors in the same
        order."""
        pairs = [
            (key, blob)
            for batch in batches(list(dict.fromkeys(hashes)))
            for key, blob in self._select(batch)
            if len(blob) == 4 * self.dimension
        ]
        vectors = np.frombuffer(b"".join(blob for _, blob in pairs), dtype="<f4").reshape(-1, self.dimension)
        good = usable(vectors)
        keys = [key for key, _ in pairs]
        if not good.all():
            keys = [key for key, is_good in zip(keys, good, strict=True) if is_good]
            vectors = vectors[good]
        return keys, vectors.astype(np.float32, copy=False)

    def get_many(self, hashes: Sequence[bytes]) -> dict[bytes, npt.NDArray[np.float32]]:
        """Those that are there. The caller bounds the number: all of them are in memory at once."""
        keys, vectors = self.matrix(hashes)
        return dict(zip(keys, vectors, strict=True))

    def blocks(self, hashes: Sequence[bytes], size: int = 1_000) -> Iterator[tuple[list[bytes], Vectors]]:
        """`matrix` for any number of hashes, a block at a time."""
        for block in batches(hashes, size):
            yield self.matrix(block)

    def missing(self, hashes: Sequence[bytes]) -> set[bytes]:
        """The hashes that have no usable vector here."""
        found: set[bytes] = set()
        for keys, _ in self.blocks(hashes):
            found.update(keys)
        return set(hashes) - found

    def put_many(self, hashes: Sequence[bytes], vectors: Vectors) -> None:
        """Safe from a kill of the process on return. A hash that is there gets the new vector."""
        rows = [(key, row.tobytes()) for key, row in zip(hashes, np.asarray(vectors, dtype="<f4"), strict=True)]

        def write(database: Database) -> None:
            with database.write(durable=False) as link:
                link.execute("INSERT INTO model (fingerprint) VALUES (?) ON CONFLICT DO NOTHING", (self._fingerprint,))
                link.executemany(
                    "INSERT INTO vector (model, text_hash, vector)"
                    " VALUES ((SELECT id FROM model WHERE fingerprint = ?), ?, ?)"
                    " ON CONFLICT DO UPDATE SET vector = excluded.vector, unused_since_s = NULL",
                    [(self._fingerprint, *row) for row in rows],
                )

        self._cache.attempt(write)

    def _select(self, batch: list[bytes]) -> list[tuple[bytes, bytes]]:
        def read(database: Database) -> list[tuple[bytes, bytes]]:
            with database.read() as link:
                rows = link.execute(
                    f"SELECT text_hash, vector FROM vector WHERE text_hash IN ({marks(len(batch))})"
                    " AND model = (SELECT id FROM model WHERE fingerprint = ?)",
                    (*batch, self._fingerprint),
                )
                return cast("list[tuple[bytes, bytes]]", rows.fetchall())

        return self._cache.attempt(read)
