"""The vector index of the daemon: Chroma's child process behind `VectorIndex`.

What must stay true: a query waits for one small batch at most, never for a whole upsert; nothing but
StoreError (or its DamagedError) leaves this class.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ragd.store.chroma import health
from ragd.store.chroma.process import ChromaProcess
from ragd.store.chroma.wire import Answer, Request, clean_metadata, clean_text, pack_vectors
from ragd.store.errors import DamagedError, StoreError
from ragd.store.turns import Turns
from ragd.store.types import MetadataValue, VectorRow

BATCH_ROWS = 100
BUSY_BATCH_ROWS = 20
"""Rows a call while questions are waiting or came within the last `BUSY_S` seconds."""
BUSY_S = 3.0
CLOSE_WAIT_S = 6.0
"""A service manager gives the whole daemon about ten seconds."""
PAGE_ROWS = 5000
VECTOR_PAGE_ROWS = 500
KEPT_ASIDE = 2


class ChromaIndex:
    """`VectorIndex` over Chroma in a child process, which is started by the first call that needs it.
    Thread-safe.

    `folder` is Chroma's alone. `lock_fd` is the state lock's descriptor, inherited by the child. `documents`
    says whether texts are stored in Chroma too.
    """

    def __init__(
        self,
        folder: Path,
        *,
        lock_fd: int | None = None,
        documents: bool = False,
        answer_timeout_s: float = 300.0,
        now: Callable[[], float] = time.time,
        process: ChromaProcess | None = None,
    ) -> None:
        self._folder = Path(os.path.realpath(folder))
        self._now = now
        self._turns = Turns()
        self._process = process or ChromaProcess(
            self._folder, lock_fd=lock_fd, documents=documents, answer_timeout_s=answer_timeout_s
        )
        self._documents = documents
        self._closed = False
        self._stopped_cleanly = health.stopped_cleanly(self._folder)

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def pid(self) -> int | None:
        """The child's process id, None while there is none."""
        return self._process.pid

    @property
    def stopped_cleanly(self) -> bool:
        """Whether the last process on this folder, before this object, closed it."""
        return self._stopped_cleanly

    # --- VectorIndex ---------------------------------------------------------------------------------------

    def create(self, collection: str, dimension: int) -> None:
        self._bulk(Request(0, "create", collection, dimension))

    def drop(self, collection: str) -> None:
        self._bulk(Request(0, "drop", collection))

    def collections(self) -> list[str]:
        return self._question(Request(0, "collections")).names

    def upsert(self, collection: str, rows: Sequence[VectorRow]) -> None:
        unique = list({row.id: row for row in rows}.values())
        if not unique:
            self._question(Request(0, "count", collection))
            return
        done = 0
        while done < len(unique):
            with self._turns.bulk():
                batch = unique[done : done + self._batch_rows()]
                self._ask(_upsert_request(collection, batch, documents=self._documents))
            done += len(batch)

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        unique = list(dict.fromkeys(ids))
        done = 0
        while done < len(unique):
            with self._turns.bulk():
                batch = unique[done : done + self._batch_rows()]
                self._ask(Request(0, "delete", collection, ids=batch))
            done += len(batch)

    def query(
        self,
        collection: str,
        vector: npt.NDArray[np.float32],
        n: int,
        where: Mapping[str, MetadataValue] | None = None,
    ) -> list[tuple[str, float]]:
        conditions = clean_metadata(where or {})
        if n <= 0 or len(conditions) < len(where or {}):
            return []
        flat = np.asarray(vector, dtype=np.float32).reshape(-1)
        answer = self._question(
            Request(0, "query", collection, vectors=pack_vectors([flat]), where=conditions, limit=n)
        )
        scores = np.frombuffer(answer.scores, dtype="<f4").tolist()
        return list(zip(answer.ids, scores, strict=True))

    def ids(self, collection: str) -> Iterator[str]:
        """Every id, a page a turn. Do not write to the collection meanwhile: pages are counted from the
        start."""
        offset = 0
        while page := self._question(Request(0, "ids", collection, limit=PAGE_ROWS, offset=offset)).ids:
            yield from page
            offset += len(page)

    def count(self, collection: str) -> int:
        return self._question(Request(0, "count", collection)).count

    def end_soon(self) -> None:
        """From any thread, at once: every call that waits or comes raises StoreError, so that `close` gets its
        turn."""
        self._process.end_soon()

    def close(self, wait_s: float = CLOSE_WAIT_S) -> None:
        """Idempotent. A child that is still writing after `wait_s` seconds is left to finish and end by
        itself."""
        with self._turns.bulk():
            self._closed = True
            self._process.stop(wait_s)

    # --- keeping it sound ----------------------------------------------------------------------------------

    def check(self, collection: str, expected: int | None = None, *, vectors: bool = False) -> list[str]:
        """What is wrong with a collection, in words; empty when it is sound.

        `expected` is how many rows it should have. `vectors` reads every vector, a page a turn: after an
        unclean stop the rows can all be there and vectors be missing. Raises StoreError when Chroma cannot be
        asked, but not DamagedError: that is an answer.
        """
        try:
            if collection not in self.collections():
                return [f"collection {collection} is missing"]
            count = self.count(collection)
            if expected is not None and count != expected:
                return [f"collection {collection} has {count} rows, not {expected}"]
            self._question(Request(0, "vectors", collection, limit=1))
            if vectors:
                read = self._read_all_vectors(collection)
                if read != count:
                    return [f"collection {collection} has {count} rows and {read} vectors"]
        except DamagedError as error:
            return [str(error)]
        return []

    def dead_share(self, collection: str) -> float:
        """Share (0..1) of the rows in the index file that were deleted: Chroma never gives their room
        back."""
        elements = self._question(Request(0, "elements", collection)).count
        live = self.count(collection)
        return max(0.0, 1.0 - live / elements) if elements else 0.0

    def compact(self) -> None:
        """Give disk space back and erase what deleted rows said. Blocks queries meanwhile."""
        self._bulk(Request(0, "compact"))

    def set_aside(self, reason: str, wait_s: float = 30.0) -> Path:
        """Stop the child, rename the folder to `<folder>.damaged-<UTC time>` and start with an empty one.
        Returns the new name; `reason` is written into it. Only the newest few set-aside folders are kept."""
        with self._turns.bulk():
            if not self._process.stop(wait_s):
                raise StoreError(f"Chroma's process {self._process.pid} is still writing to {self._folder}")
            try:
                aside = _move_aside(self._folder, reason, self._now())
            except OSError as error:
                raise StoreError(f"{self._folder} cannot be set aside: {error}") from error
            self._process.forget_damage()
            self._stopped_cleanly = True
        return aside

    # --- inside --------------------------------------------------------------------------------------------

    def _read_all_vectors(self, collection: str) -> int:
        read = 0
        while page := self._question(Request(0, "vectors", collection, limit=VECTOR_PAGE_ROWS, offset=read)).count:
            read += page
        return read

    def _batch_rows(self) -> int:
        if not self._process.max_batch:
            self._ask(Request(0, "hello"))
        rows = BUSY_BATCH_ROWS if self._turns.questions_within(BUSY_S) else BATCH_ROWS
        return max(1, min(rows, self._process.max_batch))

    def _question(self, request: Request) -> Answer:
        with self._turns.question():
            return self._ask(request)

    def _bulk(self, request: Request) -> Answer:
        with self._turns.bulk():
            return self._ask(request)

    def _ask(self, request: Request) -> Answer:
        if self._closed:
            raise StoreError("the vector index is closed")
        return self._process.ask(request)


def _upsert_request(collection: str, rows: Sequence[VectorRow], *, documents: bool) -> Request:
    try:
        vectors = pack_vectors([np.asarray(row.vector, dtype=np.float32).reshape(-1) for row in rows])
    except ValueError as error:
        raise StoreError("the vectors of one upsert differ in length") from error
    return Request(
        0,
        "upsert",
        collection,
        ids=[row.id for row in rows],
        vectors=vectors,
        metadatas=[clean_metadata(row.metadata) for row in rows],
        documents=[_clean_document(row.document) for row in rows] if documents else [],
    )


def _clean_document(document: str | None) -> str | None:
    return None if document is None else clean_text(document)


def _move_aside(folder: Path, reason: str, now_s: float) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now_s))
    aside = folder.with_name(f"{folder.name}.damaged-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = folder.with_name(f"{folder.name}.damaged-{stamp}-{number}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.rename(aside)
    (aside / "set-aside.txt").write_text(reason + "\n", encoding="utf-8")
    older = sorted(folder.parent.glob(f"{folder.name}.damaged-*"), key=lambda path: path.stat().st_mtime_ns)
    for path in older[:-KEPT_ASIDE]:
        shutil.rmtree(path)
    return aside
