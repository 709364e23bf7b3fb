"""The twin of Chroma in memory: exact, small, for tests and for trying things out.

What must stay true: it keeps every law of `VectorIndex`, errors included.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ragd.store.errors import StoreError
from ragd.store.types import MetadataValue, VectorRow


@dataclass(slots=True)
class MemoryCollection:
    """One collection; `dimension` of every vector in it."""

    dimension: int
    rows: dict[str, VectorRow] = field(default_factory=dict)


class MemoryIndex:
    """A VectorIndex. Give it the `collections` of another one to "open the same folder again".
    Thread-safe."""

    def __init__(self, collections: dict[str, MemoryCollection] | None = None) -> None:
        self.storage: dict[str, MemoryCollection] = {} if collections is None else collections
        self._lock = threading.Lock()
        self._closed = False

    def _collection(self, name: str) -> MemoryCollection:
        self._check_open()
        if name not in self.storage:
            raise StoreError(f"there is no collection {name}")
        return self.storage[name]

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("the vector index is closed")

    def create(self, collection: str, dimension: int) -> None:
        with self._lock:
            self._check_open()
            found = self.storage.setdefault(collection, MemoryCollection(dimension))
            if found.dimension != dimension:
                raise StoreError(f"collection {collection} has dimension {found.dimension}, not {dimension}")

    def drop(self, collection: str) -> None:
        with self._lock:
            self._check_open()
            self.storage.pop(collection, None)

    def collections(self) -> list[str]:
        with self._lock:
            self._check_open()
            return sorted(self.storage)

    def upsert(self, collection: str, rows: Sequence[VectorRow]) -> None:
        with self._lock:
            found = self._collection(collection)
            for row in rows:
                if row.vector.shape != (found.dimension,) or not np.isfinite(row.vector).all():
                    raise StoreError(f"row {row.id}: not {found.dimension} finite numbers")
            for row in rows:
                vector = np.array(row.vector, dtype=np.float32)
                found.rows[row.id] = VectorRow(row.id, vector, dict(row.metadata), row.document)

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        with self._lock:
            found = self._collection(collection)
            for key in ids:
                found.rows.pop(key, None)

    def query(
        self,
        collection: str,
        vector: npt.NDArray[np.float32],
        n: int,
        where: Mapping[str, MetadataValue] | None = None,
    ) -> list[tuple[str, float]]:
        with self._lock:
            found = self._collection(collection)
            if vector.shape != (found.dimension,):
                raise StoreError(f"a query of {found.dimension} numbers is needed")
            conditions = (where or {}).items()
            rows = [
                row
                for row in found.rows.values()
                if all(key in row.metadata and row.metadata[key] == value for key, value in conditions)
            ]
        if not rows or n <= 0:
            return []
        matrix = np.stack([row.vector for row in rows])
        lengths = np.linalg.norm(matrix, axis=1) * float(np.linalg.norm(vector))
        cosines = np.clip(matrix @ vector / np.where(lengths > 0, lengths, 1.0), -1.0, 1.0)
        order = np.argsort(-cosines, kind="stable")[:n]
        return [(rows[place].id, float(cosines[place])) for place in order]

    def ids(self, collection: str) -> Iterable[str]:
        with self._lock:
            return list(self._collection(collection).rows)

    def count(self, collection: str) -> int:
        with self._lock:
            return len(self._collection(collection).rows)

    def close(self) -> None:
        self._closed = True
