"""Puts store, model, parsing pool, roots and worker together, and answers for them (`Backend`).

What must stay true: one engine on one state folder, held by the lock from before the store is opened until after it
is closed; with a worker thread it is the daemon's, without one it does the work of a single command itself.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragd.chunkers.records import CutSettings, SourceFile
from ragd.daemon import reading
from ragd.daemon.backend import Answer, Progress
from ragd.daemon.config import Config
from ragd.daemon.errors import NotFoundError, StoreUnavailableError
from ragd.daemon.files import paths
from ragd.daemon.files.hints import Hint
from ragd.daemon.files.own_output import output_files
from ragd.daemon.inbox import Inbox
from ragd.daemon.indexer import Indexer
from ragd.daemon.model import HeldModel
from ragd.daemon.opening import held_model, inline_parser, parsing_pool, take_lock
from ragd.daemon.parsing.pool import Parser
from ragd.daemon.parsing.wire import ParseJob, ParsePoolError
from ragd.daemon.recipes import Recipes, Tokenizer
from ragd.daemon.requests import parse_forget, parse_get, parse_preview, parse_search
from ragd.daemon.root_set import RootSet
from ragd.daemon.status import StatusReport, WatchState
from ragd.daemon.surveyor import Surveyor
from ragd.daemon.ticket import Ticket
from ragd.daemon.worker import Worker
from ragd.store.chroma.client import ChromaIndex
from ragd.store.errors import PlaceNotFoundError, StoreError
from ragd.store.filling import Pace
from ragd.store.lock import StateLock
from ragd.store.store import Store
from ragd.store.types import Client, FileRow, ForgetFile, VectorIndex

if TYPE_CHECKING:
    from ragd.store.search import Searcher

log = logging.getLogger(__name__)

_STOP_PATIENCE_S = 2.5
"""So long a stop waits for the batch under way; what is given up then is made good at the next start."""
_PROGRESS_S = 0.2
INDEX_FOLDER = "chroma"
_NO_DAEMON = "no daemon is running: what changed since the last sync is not in"


class Engine:
    """A Backend. Build it with `Engine.open`."""

    def __init__(
        self,
        config: Config,
        lock: StateLock,
        model: HeldModel,
        *,
        index_factory: Callable[[], VectorIndex],
        index_path: Path | None,
        parser: Callable[[HeldModel], Parser],
        clock: Callable[[], float] = time.monotonic,
        clock_ns: Callable[[], int] = time.time_ns,
        steps: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.config = config
        self.model = model
        self._lock = lock
        self._clock_ns = clock_ns
        self._thread: threading.Thread | None = None
        self._working = threading.Lock()
        self._closed = False
        self.is_stopping = False
        self.watch_state: Callable[[], WatchState] = WatchState
        self.store = Store(
            config.state_dir,
            identity=model.identity,
            index_factory=index_factory,
            index_path=index_path,
            documents=config.store.documents,
            clock_ns=clock_ns,
            steps=steps,
            on_lost_files=lambda: self.walk_all(),
            pace=Pace(
                batch_tokens=config.embedding.batch_tokens,
                queries_waiting=model.is_asked,
                stop=lambda: self.worker.pipeline.stop_embedding(),
                on_batch=lambda texts, tokens: self.worker.pipeline.on_batch(texts, tokens),
            ),
        )
        own = [os.fsencode(path) for path in (config.state_dir, config.socket_path, config.token_file)]
        self.roots = RootSet(config.roots, own + output_files())
        for root in self.roots:
            for place in root.rules.kept_out:
                log.info("%s is ragd's own and is not indexed", paths.show(paths.join(root.rules.path, place)))
        self.roots.remember(self.store.catalog)
        recipes = Recipes(config, Tokenizer(model.counter.fingerprint, model.budget))
        self.inbox = Inbox(debounce_ms=config.watch.debounce_ms, max_delay_ms=config.watch.max_delay_ms, clock=clock)
        self._parser = parser(model)
        max_bytes = int(config.limits.max_file_mb * 1_000_000)
        self._surveyor = Surveyor(self.roots, recipes, self.store, max_bytes=max_bytes, clock_ns=clock_ns)
        self.worker = Worker(
            inbox=self.inbox,
            roots=self.roots,
            surveyor=self._surveyor,
            indexer=Indexer(self.roots, recipes, self._parser, self._row, max_bytes=max_bytes, clock_ns=clock_ns),
            store=self.store,
            model=model,
            clock=clock,
        )
        self._recipes = recipes
        self._max_bytes = max_bytes
        self._status = StatusReport(
            store=self.store,
            roots=self.roots,
            worker=self.worker,
            model=model,
            watch=lambda: self.watch_state(),
            is_stopping=lambda: self.is_stopping or self._closed,
            is_served=False,
        )

    # --- open and close ---

    @classmethod
    def open(
        cls,
        config: Config,
        *,
        inline_parsing: bool = False,
        before_store: Callable[[], None] = lambda: None,
    ) -> Engine:
        """Take the lock and open everything but the weights and the vector index, which open when first needed.

        `before_store` is called once the lock is held. Raises StateLockedError, ModelUnavailableError,
        StoreUnavailableError, UsageError.
        """
        lock = take_lock(config)
        try:
            before_store()
            model = held_model(config)
            folder = config.state_dir / INDEX_FOLDER
            return cls(
                config,
                lock,
                model,
                index_factory=lambda: ChromaIndex(folder, lock_fd=lock.fileno(), documents=config.store.documents),
                index_path=folder,
                parser=inline_parser if inline_parsing else lambda held: parsing_pool(config, held),
            )
        except StoreError as error:
            lock.release()
            raise StoreUnavailableError(str(error)) from error
        except BaseException:
            lock.release()
            raise

    def serve(self) -> None:
        """Before the first request can come from another thread: from now on only the worker's thread works, and a
        request that comes before `start` waits for it."""
        self._status.is_served = True

    def start(self) -> None:
        """Work on a thread of its own from now on, and load the model."""
        self.serve()
        self.model.start()
        threading.Thread(target=self._warm_up, name="warm-up", daemon=True).start()
        self._thread = threading.Thread(target=self.worker.run, name="worker", daemon=True)
        self._thread.start()

    def _warm_up(self) -> None:
        """Start the parsing child and open the vector index before the first save or query needs them."""
        try:
            self._parser.submit(ParseJob(SourceFile(b"", "", b"warm-up.md"), CutSettings()))
            self.store.recover()
            self.store.index.collections()
        except (StoreError, ParsePoolError) as error:
            if not self._closed:  # the worker meets it again, and says so
                log.error("warming up: %s", error)

    def walk_all(self) -> None:
        """Post a walk of every root."""
        for root in self.roots:
            self.inbox.post(Hint(root.name, b""))

    def close(self) -> None:
        """Idempotent. Ends the current batch, closes the store, frees the lock."""
        if self._closed:
            return
        self._closed = True
        self.worker.stop()
        # A large recovery, or a Chroma process that loads for long, must not keep a service from stopping.
        giving_up = threading.Timer(_STOP_PATIENCE_S, self.store.end_soon)
        giving_up.daemon = True
        giving_up.start()
        try:
            if self._thread is not None:
                self._thread.join()
            self._parser.close()
            self.store.close()
        finally:
            giving_up.cancel()
            self._lock.release()

    @cached_property
    def _searcher(self) -> Searcher:
        from ragd.store.search import Searcher  # a sync that finds nothing to do needs none of it

        return Searcher(
            self.store.snapshot,
            lambda: self.store.index,
            self.store.cache,
            index_failed=self._index_failed,
        )

    def _index_failed(self, error: StoreError) -> None:
        """Words alone had to answer. The worker sees to the index, now."""
        log.error("the vector index could not answer a query: %s", error)
        self.store.suspect()
        self.walk_all()

    # --- Backend ---

    def status(self, client: Client) -> Answer:
        return self._status.answer(client)

    def search(self, client: Client, params: Mapping[str, Any]) -> Answer:
        defaults = {"k": self.config.search.k, "mode": self.config.search.mode}
        request = parse_search({**defaults, **params}, datetime.now().astimezone())
        if not self._status.is_served and request.mode != "lexical":
            self.model.wait()
        with _as_user_errors(), self.model.question():
            if not self._status.is_served and request.mode != "lexical":
                try:
                    self.store.recover()
                except StoreError:
                    if request.mode == "dense":
                        raise  # a hybrid search meets the same error and is answered by words
            answer = self._searcher.search(
                request, client, self.roots.views(), self.model.as_it_stands(), pending=self.worker.pending
            )
        if not self._status.is_served:
            answer["notice"] = "; ".join(filter(None, (answer["notice"], _NO_DAEMON)))
        return answer

    def get(self, client: Client, params: Mapping[str, Any]) -> Answer:
        request = parse_get(params)
        with _as_user_errors():
            return reading.get(self.store, self.roots, client, request, self._max_bytes)

    def why(self, client: Client, path: str) -> Answer:
        with _as_user_errors():
            return reading.why(self.store, self.roots, client, path, self.worker.queue.holds)

    def preview(self, client: Client, params: Mapping[str, Any]) -> Answer:
        request = parse_preview(params)
        with _as_user_errors():
            return reading.preview(self.roots, self._recipes, self._parser, client, request, self._max_bytes)

    def failures(self, client: Client) -> Answer:
        with _as_user_errors():
            return reading.failures(self.store, self.roots, client)

    def sync(self, client: Client, paths: Sequence[str], progress: Progress | None = None) -> Answer:
        places = reading.places_of(self.roots, client, paths)
        if not self.store.index_is_ready:
            with _as_user_errors():
                self.store.recover()  # first: it may find files that have to be indexed again
        ticket = self.worker.request(places, Ticket())
        with _as_user_errors():
            self._complete(ticket, progress)
        return ticket.answer(self.status(client)["chunks"])

    def forget(self, client: Client, params: Mapping[str, Any]) -> Answer:
        request = parse_forget(params)
        with _as_user_errors():
            if request.confirm is not None:
                root = reading.root_named(self.roots, client, request.confirm)
                root.confirmed = True
                ticket = self.worker.request([(root.name, b"")], Ticket())
                self._complete(ticket, None)
                self.store.erase_unused()
                return {"forgotten": ticket.files.forgotten, "root": root.name}
            root, place = reading.place_to_forget(self.store, self.roots, client, request.path or "")
            with self._working:
                gone = reading.files_that_went(self.store, root, place)
                self.store.commit([ForgetFile(root.name, path) for path in gone], None)
                self.store.erase_unused()
                root.note_forgotten(gone, self._surveyor.files_in(root.name))
            return {"forgotten": len(gone), "root": root.name}

    # --- working ---

    def _complete(self, ticket: Ticket, progress: Progress | None) -> None:
        """Wait until the worker's thread has done it, or do it here."""
        while not ticket.finished:
            if not self._status.is_served:
                with self._working:
                    tick = self.worker.tick()
                if tick.did == "failed" and self.worker.error is not None:
                    raise self.worker.error
                if tick.did == "waiting":
                    self.model.wait(tick.wait_s)
                elif tick.did == "idle" or tick.did == "drained":
                    self.inbox.wait(0.05)
            else:
                ticket.wait(_PROGRESS_S)
            if progress is not None:
                progress(ticket.progress())
        ticket.wait()
        if not self._status.is_served:
            while self.worker.tick().did not in ("idle", "failed", "waiting"):
                pass

    def _row(self, root: str, path: bytes) -> FileRow | None:
        return self.store.catalog.file_row(self.store.target.id, root, path)


@contextmanager
def _as_user_errors() -> Iterator[None]:
    try:
        yield
    except PlaceNotFoundError as error:
        raise NotFoundError(str(error)) from error
    except StoreError as error:
        raise StoreUnavailableError(str(error)) from error
