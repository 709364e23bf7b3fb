"""The store as the daemon holds it: catalog, vector cache, vector index, generations and the commit
protocol together.

What must stay true: everything that writes goes through here, one writer at a time; readers get snapshots
and are never in its way. The vector index is opened when it is first needed, and after an unclean stop it
is checked first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragd.store import generations, opening, recovery
from ragd.store.catalog import Catalog
from ragd.store.commit import Committer
from ragd.store.epochs import Epochs
from ragd.store.errors import DamagedError, InterruptedCommitError, StoreError
from ragd.store.filling import Pace
from ragd.store.prune import prune
from ragd.store.recovery import Comparison, HurriedIndex, RepairableIndex
from ragd.store.rows import text_hash
from ragd.store.snapshot import Snapshot
from ragd.store.sqlite import private_folder
from ragd.store.types import (
    Change,
    CommitOutcome,
    Embedder,
    ForgetFile,
    Generation,
    IndexFile,
    ModelIdentity,
    VectorIndex,
)
from ragd.store.vector_cache import VectorCache

CATALOG_FILE = "catalog.sqlite3"
CACHE_FILE = "vectors.sqlite3"
_CLEAN_STOP = "clean_stop"
_PRUNED_AT = "cache_pruned_at_s"
_PRUNE_EVERY_S = 86_400
_UNUSED_FOR_S = 30 * 86_400
_UNUSED_SHARE = 0.5
"""Vectors of texts that are gone stay so long, up to so much of the cache: texts come back."""


def _no_step(_: str) -> None:
    return None


def _nothing_lost() -> None:
    return None


class Store:
    """Open it while holding the lock on the state folder. Reads from any thread; writes wait for each
    other."""

    def __init__(
        self,
        state_dir: Path,
        *,
        identity: ModelIdentity,
        index_factory: Callable[[], VectorIndex],
        pace: Pace,
        index_path: Path | None = None,
        index_is_private: bool = True,
        documents: bool = False,
        clock_ns: Callable[[], int] = time.time_ns,
        steps: Callable[[str], None] = _no_step,
        on_lost_files: Callable[[], None] = _nothing_lost,
    ) -> None:
        """Open catalog and cache and settle the generations; the vector index stays closed.

        `index_path` is the folder of the index, whose files tell whether it is as it was at the last clean
        stop; None: it is always compared at start. `index_is_private`: nobody else has collections in it.
        `steps` is called with a name after each durable step; `on_lost_files` when files have to be indexed again
        because vectors of theirs are nowhere any more: the next walk finds them. Raises StoreError.
        """
        self.identity = identity
        self._index_factory = index_factory
        self._index_path = index_path
        self._index_is_private = index_is_private
        self._documents = documents
        self._clock_ns = clock_ns
        self._steps = steps
        self._on_lost_files = on_lost_files
        self._pace = pace
        self._index: VectorIndex | None = None
        self._index_lock = threading.RLock()
        self._writing = threading.RLock()
        self._closed = self._is_ending = False
        self.epochs = Epochs()
        private_folder(state_dir)
        self._database, self._problems = opening.open_catalog(
            state_dir / CATALOG_FILE, state_dir / CACHE_FILE, self._stamp()
        )
        self.catalog = Catalog(self._database)
        self.cache = VectorCache(state_dir / CACHE_FILE, self._stamp)
        self._committer = Committer(
            self._database,
            self.cache,
            lambda: self.index,
            self.epochs,
            pace,
            documents=documents,
            clock_ns=clock_ns,
            steps=steps,
        )
        self._is_settled = self._stopped_cleanly()
        self.installation = opening.installation_name(self.catalog, self.cache)
        opening.forget_epochs(self._database)
        opening.rebuild_lexical_tables(self._database)
        self._generations = generations.settle(
            self._database, identity, self.installation, epochs=self.epochs, now_ns=clock_ns()
        )

    # --- what is there

    @property
    def problems(self) -> list[str]:
        """What a person should know since this was opened: things set aside, lost, rebuilt."""
        return [*self._problems, *self.cache.problems]

    @property
    def live(self) -> Generation:
        """The generation that answers."""
        return self._generations.live

    @property
    def building(self) -> Generation | None:
        """The generation of a changed model, while it is being filled."""
        return self._generations.building

    @property
    def target(self) -> Generation:
        """The generation that files are indexed into: the building one, else the live one."""
        return self._generations.target

    @contextmanager
    def snapshot(self) -> Iterator[Snapshot]:
        """For one query: open it before asking the vector index, keep it until the last look at both."""
        with self.epochs.query(), self._database.read() as link:
            yield Snapshot(link)

    @property
    def index(self) -> VectorIndex:
        """The vector index, opened at first need. Before that the mark of a clean stop goes."""
        with self._index_lock:
            if self._index is None:
                if self._closed or self._is_ending:
                    raise StoreError("the store is closed")
                self.catalog.set_meta(_CLEAN_STOP, None)
                self._index = self._index_factory()
            return self._index

    @property
    def index_is_ready(self) -> bool:
        """False until `recover` has found or made it equal to the catalog; dense answers may lack hits
        before."""
        return self._is_settled

    # --- writing

    def commit(self, changes: Sequence[Change], embedder: Embedder | None) -> CommitOutcome:
        """Make the changes durable in the target generation, in one run of the protocol (commit.py).

        While a generation is being built, files that are gone also leave the live one. Repeating is harmless.
        Raises StoreError, ModelError, and InterruptedCommitError when asked to stop (`pace.stop`).
        """
        with self._write():
            gone = [change for change in changes if isinstance(change, ForgetFile)]
            if self._generations.building is not None and gone:
                self._committer.commit(self._generations.live, gone, None)
            return self._committer.commit(self._generations.target, changes, embedder)

    def drain(self) -> bool:
        """Delete what no query needs any more: replaced rows, retired generations, a bounded piece of them
        a call. True when nothing is left; call it when there is nothing else to do."""
        try:
            with self._write():
                done = self._committer.drain()
                for generation in generations.retired(self._database, self.epochs.safe):
                    self.index.drop(generation.collection)
                    self._steps("dropped")
                    if not generations.remove_some(self._database, generation):
                        return False
                    self._steps("removed")
                return done and not generations.retired(self._database, 2**62)
        except InterruptedCommitError:
            return False

    def forget_root(self, root: str, limit: int = 500) -> int:
        """Forget up to `limit` files of a root that is no longer configured; call until it returns 0.
        Raises as `commit`."""
        with self._write():
            forgotten = 0
            for generation in filter(None, (self._generations.live, self._generations.building)):
                paths = self.catalog.paths(generation.id, root, limit)
                self._committer.commit(generation, [ForgetFile(root, path) for path in paths], None)
                forgotten += len(paths)
            return forgotten

    def finish_building(self) -> bool:
        """Every file is in the building generation: verify it and let it answer. False when rows were lost
        and files are to be indexed again first; then walk, plan and commit, and call this again.
        Raises as `commit`."""
        with self._write():
            building = self._generations.building
            if building is None:
                return True
            self._committer.drain()
            if self._compare(building, repair=True).lost_files:
                return False
            self._generations = generations.make_live(self._database, building, epochs=self.epochs)
            self._steps("live")
            return True

    @contextmanager
    def _write(self) -> Iterator[None]:
        """One writer at a time, on an index that equals the catalog."""
        with self._writing:
            self._settle()
            try:
                yield
            except StoreError:
                self._is_settled = False  # whatever happened, compare before the next commit
                raise

    # --- start, check, stop

    def recover(self) -> list[str]:
        """Make the vector index equal to the catalog. Nothing to do and no index opened after a clean stop.

        Idempotent; every writing call makes sure of it. Returns what a person should know. A damaged index is
        set aside once and rebuilt. Asked to stop (`pace.stop`), it ends early and `index_is_ready` stays False.
        Raises StoreError when the index cannot be reached or rebuilt.
        """
        try:
            return self._settle()
        except InterruptedCommitError:
            return []

    def _settle(self) -> list[str]:
        with self._writing:
            if self._is_settled:
                return []
            found: list[str] = []
            try:
                found += self._make_equal()
            except DamagedError as error:
                index = self.index
                if not isinstance(index, RepairableIndex) or not self._database.sound():
                    raise
                place = index.set_aside(str(error))
                self._steps("set aside")
                found.append(f"the vector index was set aside as {place} and built anew: {error}")
                found += self._make_equal()
            self._is_settled = True
            self._problems += found
            return found

    def prune_cache(self) -> int:
        """Once a day: remove vectors that no chunk has needed for long. How many went; 0 on other calls."""
        now_s = self._clock_ns() // 1_000_000_000
        last = self.catalog.meta(_PRUNED_AT)
        if last is not None and now_s - int(last) < _PRUNE_EVERY_S:
            return 0
        with self._writing:
            self.catalog.set_meta(_PRUNED_AT, str(now_s), durable=False)
            if last is None:
                return 0
            return prune(self.cache, self._database, now_s=now_s, max_age_s=_UNUSED_FOR_S, max_share=_UNUSED_SHARE)

    def needs_model(self, changes: Sequence[Change]) -> bool:
        """Whether a commit of these changes would embed anything: some text has no vector in the cache yet."""
        target = self._generations.target
        hashes = [
            text_hash(chunk.embedded_text)
            for change in changes
            if isinstance(change, IndexFile)
            for chunk in change.cut.chunks
        ]
        return bool(self.cache.of(target.identity, target.dimension).missing(hashes))

    def erase_unused(self) -> int:
        """Remove every vector that no chunk refers to, now: what a person forgot leaves nothing behind."""
        with self._writing:
            now_s = self._clock_ns() // 1_000_000_000
            return prune(self.cache, self._database, now_s=now_s, max_age_s=0, max_share=0.0)

    def suspect(self) -> None:
        """The vector index could not answer: compare it with the catalog before the next commit (and set it aside
        when it turns out to be damaged)."""
        self._is_settled = False

    def verify(self, *, repair: bool = False) -> dict[int, Comparison]:
        """Compare each generation with its collection, by id; with `repair`, make them equal. Raises as `commit`."""
        with self._write():
            self._committer.drain()
            return {
                generation.id: self._compare(generation, repair=repair)
                for generation in filter(None, (self._generations.live, self._generations.building))
            }

    def end_soon(self) -> None:
        """From any thread, at once: what is being done with the vector index is given up, to be made good at the
        next start; so that `close` need not wait for it."""
        self._is_ending = True
        index: object = self._index
        if isinstance(index, HurriedIndex):
            index.end_soon()

    def close(self) -> None:
        """Idempotent. Marks a clean stop when index and catalog are known to be equal."""
        with self._writing, self._index_lock:
            if self._closed:
                return
            was_open, settled = self._index is not None, self._is_settled
            self._closed = True
            try:
                self._close_index()
                if was_open and settled and self._index_path is not None:
                    self.catalog.set_meta(_CLEAN_STOP, recovery.folder_fingerprint(self._index_path))
            finally:
                self.cache.close()
                self._database.close()

    def _close_index(self) -> None:
        with self._index_lock:
            index, self._index = self._index, None
            if index is not None:
                index.close()

    def _stopped_cleanly(self) -> bool:
        if self._index_path is None:
            return False
        mark = self.catalog.meta(_CLEAN_STOP)
        return mark is not None and mark == recovery.folder_fingerprint(self._index_path)

    def _make_equal(self) -> list[str]:
        found: list[str] = []
        both = [self._generations.live, *filter(None, [self._generations.building])]
        with self._database.read() as link:
            known = {str(row[0]) for row in link.execute("SELECT collection FROM generation")}
        prefix = "ragd-" if self._index_is_private else generations.collection_prefix(self.installation)
        recovery.drop_unknown(self.index, known, prefix)
        self._committer.drain()
        for generation in both:
            result = self._compare(generation, repair=True, vectors_too=True)
            if result.missing:
                found.append(
                    f"the vector index lacked {result.missing} rows: {result.rewritten} were written again"
                    f" from the vector cache, {len(result.lost_files)} files are indexed again"
                )
            if result.extra:
                found.append(f"the vector index had {result.extra} rows of no live chunk; they were deleted")
        return found

    def _compare(self, generation: Generation, *, repair: bool, vectors_too: bool = False) -> Comparison:
        vectors = self.cache.of(generation.identity, generation.dimension)
        result = recovery.compare(
            self._database,
            self.index,
            generation,
            vectors,
            documents=self._documents,
            repair=repair,
            vectors_too=vectors_too,
            steps=self._steps,
            stop=self._pace.stop,
        )
        if result.lost_files and repair:
            self._on_lost_files()
        return result

    def _stamp(self) -> str:
        seconds = self._clock_ns() // 1_000_000_000
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))
