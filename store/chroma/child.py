"""The process that has Chroma open. The only door to chromadb; started by `process.py`, never by a person.

What must stay true: one request at a time, and one that has begun is finished: signals meant for the daemon
are ignored here, and the process ends by itself once the daemon's end of the socket is closed.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import select
import signal
import sqlite3
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ragd.store.chroma import health
from ragd.store.chroma.serving import serve
from ragd.store.chroma.wire import Answer, Request, Scalar, unpack_vectors

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.collection_configuration import CreateCollectionConfiguration
    from chromadb.api.models.Collection import Collection

OPERATIONS = frozenset(
    {
        "hello",
        "create",
        "drop",
        "compact",
        "collections",
        "upsert",
        "delete",
        "query",
        "ids",
        "count",
        "vectors",
        "elements",
    }
)
"""What can be asked for: the methods of `Chroma` that answer."""
_SAME_VECTOR = 1e-5
CONFIGURATION: CreateCollectionConfiguration = {"hnsw": {"space": "cosine", "ef_search": 300, "sync_threshold": 1000}}
"""Set when a collection is created; Chroma keeps the first setting for good. ef_search 300: recall@10 of 0.99
on text-like vectors. sync_threshold: rows between two writes of the index files; every upsert reads back the
rows since the last one, every write is a moment a kill can tear."""

_DAMAGE = (
    "hnsw",
    "pickle",
    "finding id",
    "getting embedding",
    "malformed",
    "not a database",
    "corrupt",
    "no such table",
)
_PASSING = (
    "locked",
    "is full",
    "readonly",
    "read-only",
    "permission",
    "too many open files",
    "unable to open",
)


class FolderDamagedError(Exception):
    """The folder shows damage."""


def problem_of(error: Exception) -> str:
    """The word for `error` in an answer: refused, failed or damaged."""
    import chromadb.errors

    text = str(error).lower()
    if isinstance(error, FolderDamagedError):
        return "damaged"
    if isinstance(error, (chromadb.errors.NotFoundError, chromadb.errors.InvalidArgumentError, ValueError, TypeError)):
        return "refused"
    if any(sign in text for sign in _PASSING):
        return "failed"
    if isinstance(error, sqlite3.DatabaseError) or any(sign in text for sign in _DAMAGE):
        return "damaged"
    return "failed"


def where_clause(where: dict[str, Scalar]) -> dict[str, Any] | None:
    """Chroma's form of "all of these are equal"."""
    conditions: list[dict[str, Any]] = [{key: {"$eq": value}} for key, value in where.items()]
    if len(conditions) > 1:
        return {"$and": conditions}
    return conditions[0] if conditions else None


class Chroma:
    """One folder, opened. Every method answers one request."""

    def __init__(self, folder: Path, *, documents: bool) -> None:
        self._folder = folder
        self._documents = documents
        self._collections: dict[str, Collection] = {}
        self._client = self._open()

    def answer(self, request: Request) -> Answer:
        """Do one request. Raises whatever Chroma raises."""
        if request.operation not in OPERATIONS:
            raise ValueError(f"unknown operation {request.operation}")
        done: Answer = getattr(self, request.operation)(request)
        return done

    def hello(self, _: Request) -> Answer:
        return Answer(0, count=int(self._client.get_max_batch_size()), names=self._names())

    def create(self, request: Request) -> Answer:
        if request.collection in self._names():
            there = self._dimension(self._collection(request.collection))
            if there != request.dimension:
                raise ValueError(f"collection {request.collection} has dimension {there}, not {request.dimension}")
            return Answer(0)
        self._collections[request.collection] = self._client.create_collection(
            request.collection,
            embedding_function=None,
            metadata={"dimension": request.dimension},
            configuration=CONFIGURATION,
        )
        return Answer(0)

    def drop(self, request: Request) -> Answer:
        if request.collection in self._names():
            self._client.delete_collection(request.collection)
        return self.compact(request)

    def compact(self, _: Request) -> Answer:
        """Chroma has to let go of its files before they can be removed and shrunk."""
        self._collections.clear()
        self._client.close()
        try:
            removed = health.sweep(self._folder)
            health.shrink(self._folder)
        finally:
            self._client = self._open()
        return Answer(0, count=removed)

    def collections(self, _: Request) -> Answer:
        return Answer(0, names=self._names())

    def upsert(self, request: Request) -> Answer:
        """Rows that are there already as they should be are left alone: rewriting one costs twice a new
        one."""
        collection = self._collection(request.collection)
        dimension = self._dimension(collection)
        if len(request.vectors) != 4 * dimension * len(request.ids):
            raise ValueError(f"vectors of collection {request.collection} have {dimension} dimensions")
        vectors = unpack_vectors(request.vectors, dimension)
        if not np.isfinite(vectors).all():
            raise ValueError("a vector has a number that is not finite")
        documents = request.documents if self._documents and request.documents else [None] * len(request.ids)
        ids, metadatas, chosen, texts = [], [], [], []
        known = self._known(collection, request.ids)
        for position, row_id in enumerate(request.ids):
            metadata: dict[str, Scalar | None] = dict(request.metadatas[position])
            if row_id in known:
                old_metadata, old_document, old_vector = known[row_id]
                same_vector = np.abs(old_vector - vectors[position]).max() < _SAME_VECTOR
                if same_vector and old_metadata == metadata and old_document == documents[position]:
                    continue
                # Chroma merges: a key that is left out would stay (FAULTS D5).
                metadata |= dict.fromkeys(old_metadata.keys() - metadata.keys())
                if old_document is not None and documents[position] is None:
                    collection.delete(ids=[row_id])
            ids.append(row_id)
            metadatas.append(metadata or None)
            chosen.append(position)
            texts.append(documents[position])
        if ids:
            self._write(collection, ids, vectors[chosen], metadatas, texts)
        return Answer(0, count=len(ids))

    def delete(self, request: Request) -> Answer:
        self._collection(request.collection).delete(ids=request.ids)
        return Answer(0)

    def query(self, request: Request) -> Answer:
        collection = self._collection(request.collection)
        dimension = self._dimension(collection)
        if len(request.vectors) != 4 * dimension:
            raise ValueError(f"vectors of collection {request.collection} have {dimension} dimensions")
        found = collection.query(
            query_embeddings=unpack_vectors(request.vectors, dimension),
            n_results=request.limit,
            where=where_clause(request.where),
            include=["distances"],
        )
        distances = (found["distances"] or [[]])[0]
        scores = np.clip(1.0 - np.asarray(distances, dtype=np.float32), -1.0, 1.0)
        return Answer(0, ids=found["ids"][0], scores=scores.astype("<f4").tobytes())

    def ids(self, request: Request) -> Answer:
        page = self._collection(request.collection).get(include=[], limit=request.limit, offset=request.offset)
        return Answer(0, ids=page["ids"])

    def count(self, request: Request) -> Answer:
        return Answer(0, count=self._collection(request.collection).count())

    def vectors(self, request: Request) -> Answer:
        """Read one page of vectors: Chroma fails on the first id it has no vector for. `count` says how
        many."""
        page = self._collection(request.collection).get(
            include=["embeddings"], limit=request.limit, offset=request.offset
        )
        vectors = np.asarray(page["embeddings"], dtype=np.float32)
        if page["ids"] and not np.isfinite(vectors).all():
            raise FolderDamagedError("a vector has a number that is not finite")
        return Answer(0, count=len(page["ids"]))

    def elements(self, request: Request) -> Answer:
        """How many rows the collection's index file has room taken by, deleted ones included."""
        collection = self._collection(request.collection)
        return Answer(0, count=health.elements_on_disk(self._folder, str(collection.id)))

    def close(self) -> None:
        self._client.close()
        health.make_durable(self._folder)
        health.mark_clean_stop(self._folder)

    def _open(self) -> Client:
        import chromadb
        from chromadb.config import Settings

        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        health.clear_clean_stop(self._folder)
        problems = health.folder_problems(self._folder) or health.lost_segments(self._folder)
        if problems:
            raise FolderDamagedError("; ".join(problems))
        health.sweep(self._folder)
        settings = Settings(anonymized_telemetry=False)
        return cast("Client", chromadb.PersistentClient(path=str(self._folder), settings=settings))

    def _names(self) -> list[str]:
        return sorted(collection.name for collection in self._client.list_collections())

    def _collection(self, name: str) -> Collection:
        if name not in self._collections:
            self._collections[name] = self._client.get_collection(name, embedding_function=None)
        return self._collections[name]

    @staticmethod
    def _dimension(collection: Collection) -> int:
        return int((collection.metadata or {})["dimension"])

    def _known(self, collection: Collection, ids: list[str]) -> dict[str, tuple[dict[str, Any], str | None, Any]]:
        """What is stored of those of `ids` that are there: metadata, document, vector."""
        there = collection.get(ids=ids, include=[])["ids"]
        if not there:
            return {}
        rows = collection.get(ids=there, include=["metadatas", "documents", "embeddings"])
        vectors = np.asarray(rows["embeddings"], dtype=np.float32)
        columns = zip(rows["ids"], rows["metadatas"] or (), rows["documents"] or (), vectors, strict=True)
        return {row_id: (dict(metadata or {}), document, vector) for row_id, metadata, document, vector in columns}

    def _write(self, collection: Collection, ids: Any, vectors: Any, metadatas: Any, documents: Any) -> None:
        if any(text is not None for text in documents):
            collection.upsert(ids=ids, embeddings=vectors, metadatas=metadatas, documents=documents)
        else:
            collection.upsert(ids=ids, embeddings=vectors, metadatas=metadatas)


def load_chroma(descriptor: int) -> None:
    """Import chromadb, which takes seconds. This process ends at once if the daemon's end of the socket is closed
    meanwhile: nothing is open yet, and the next daemon waits for the lock that is held here (FAULTS F12)."""
    loaded = threading.Event()
    poll = select.poll()
    poll.register(descriptor, 0)  # a hang-up is always reported

    def end_with_daemon() -> None:
        while not loaded.is_set():
            if poll.poll(100):
                os._exit(0)

    watching = threading.Thread(target=end_with_daemon, name="end-with-daemon", daemon=True)
    watching.start()
    import chromadb  # noqa: F401 - only loaded here

    loaded.set()
    watching.join()  # from here on a request that has begun is finished


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--socket", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--lock", type=int)
    parser.add_argument("--documents", action="store_true")
    options = parser.parse_args()
    faulthandler.enable()
    os.umask(0o077)
    for descriptor in (options.socket, options.lock):
        if descriptor is not None:
            os.set_inheritable(descriptor, False)
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    load_chroma(options.socket)
    connection = Connection(options.socket)
    serve(connection, options.parent, lambda: Chroma(options.folder, documents=options.documents), problem_of)


if __name__ == "__main__":
    main()
    sys.exit(0)
