"""The way of the tasks: read, cut by the parsing children, and committed in groups.

What must stay true: a task that was taken is committed, superseded by a newer look at the same file, or put back;
never lost. Two reads of one file are committed in the order they were made.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ragd.daemon.errors import UserError
from ragd.daemon.files import paths
from ragd.daemon.files.hints import Hint
from ragd.daemon.indexer import Begun, Indexer, Prepared
from ragd.daemon.model import HeldModel
from ragd.daemon.parsing.wire import ParsePoolError
from ragd.daemon.task_queue import FileKey, Task, TaskQueue
from ragd.daemon.ticket import Failure, Ticket
from ragd.store.errors import InterruptedCommitError, ModelError, StoreError
from ragd.store.store import Store
from ragd.store.types import Change, CommitOutcome

log = logging.getLogger(__name__)

GROUP_TEXTS = 128
"""A commit is made when so many chunks are ready: large enough to cost little, small enough to be done soon."""
GROUP_FILES = 200
AHEAD_FILES = 48
AHEAD_BYTES = 32_000_000
"""Files read and handed to the parsing children before they are needed."""


@dataclass(slots=True)
class Lane:
    """Tasks under way, in order: read or being cut, then ready to be committed."""

    is_urgent: bool
    begun: deque[Begun] = field(default_factory=deque)
    ready: list[Prepared] = field(default_factory=list)
    singly: int = 0
    """So many of the next commits are of one file: one of them brought a whole group down."""

    @property
    def texts(self) -> int:
        return sum(prepared.texts for prepared in self.ready)

    def __len__(self) -> int:
        return len(self.begun) + len(self.ready)


class Pipeline:
    """For the worker's thread. `post` brings a hint back to the inbox; `is_wanted` says that the backlog should make
    room."""

    def __init__(
        self,
        queue: TaskQueue,
        indexer: Indexer,
        store: Store,
        model: HeldModel,
        *,
        post: Callable[[Hint], None],
        is_wanted: Callable[[], bool],
        is_stopping: Callable[[], bool],
    ) -> None:
        self.totals = CommitOutcome()
        self._queue = queue
        self._indexer = indexer
        self._store = store
        self._model = model
        self._post = post
        self._is_wanted = is_wanted
        self._is_stopping = is_stopping
        self._lanes = {True: Lane(is_urgent=True), False: Lane(is_urgent=False)}
        self._under_way: dict[FileKey, Begun] = {}
        self._batches = 0
        self._may_interrupt = False

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def advance(self, *, urgent: bool) -> str | None:
        """Bring some tasks of a lane to their commit: "committed", "interrupted", "waiting" (for the model), or None
        when the lane has none. Raises StoreError and UserError; then nothing is lost, and whoever waits is told."""
        lane = self._lanes[urgent]
        self._read_ahead(lane)
        if not len(lane):
            return None
        try:
            while lane.begun and lane.texts < GROUP_TEXTS and len(lane.ready) < GROUP_FILES:
                self._finish_one(lane)
                self._read_ahead(lane)
                if not urgent and self._is_wanted():
                    return "interrupted"
            return self._commit(lane)
        except (StoreError, ModelError, UserError) as error:
            self._tell(lane, error)
            raise

    def walked(self, root: str, places: Sequence[bytes], saw_deleted: Callable[[bytes], bool]) -> None:
        """These places were walked and planned while files of them are under way, which are in no catalog yet: a file
        that went, or that a rule leaves out now, is looked at once more after its commit."""
        self._indexer.rules_may_differ(root)
        for (name, path), begun in self._under_way.items():
            if name == root and any(paths.is_under(path, place) for place in places):
                begun.is_walked_over = True
                begun.saw_deleted = begun.saw_deleted or saw_deleted(path)

    # --- read and cut ---

    def _read_ahead(self, lane: Lane) -> None:
        size_bytes = sum(begun.size_bytes for begun in lane.begun)
        if len(lane.begun) >= AHEAD_FILES or size_bytes >= AHEAD_BYTES or len(lane.ready) >= GROUP_FILES:
            return
        for task in self._queue.take(urgent=lane.is_urgent):
            begun = self._begin(task)
            older = self._under_way.pop(task.key, None)
            if older is not None:
                # An older look at this file is not committed any more; who waited for it waits for this one.
                older.is_superseded = True
                task.tickets += older.task.tickets
            self._under_way[task.key] = begun
            lane.begun.append(begun)
            size_bytes += begun.size_bytes
            if len(lane.begun) >= AHEAD_FILES or size_bytes >= AHEAD_BYTES:
                return

    def _begin(self, task: Task) -> Begun:
        try:
            return self._indexer.begin(task)
        except ParsePoolError:
            self._queue.put_back([task])
            raise
        except Exception as error:
            log.exception("%s: reading it failed", self._indexer.shown(task))
            return Begun(task, self._indexer.broken(task, error))

    def _finish_one(self, lane: Lane) -> None:
        begun = lane.begun[0]
        if begun.is_superseded:
            lane.begun.popleft()
            return
        try:
            prepared = self._indexer.finish(begun)
        except ParsePoolError as error:
            # No child can be had: begin these again later, when one may.
            again = [waiting for waiting in lane.begun if not waiting.is_superseded]
            lane.begun.clear()
            for waiting in again:
                self._under_way.pop(waiting.task.key, None)
            self._queue.put_back(waiting.task for waiting in again)
            raise StoreError(f"files cannot be parsed now: {error}") from error
        lane.begun.popleft()
        lane.ready.append(prepared)

    # --- commit ---

    def _commit(self, lane: Lane) -> str:
        lane.ready = [prepared for prepared in lane.ready if not self._is_superseded(prepared)]
        group = lane.ready[:1] if lane.singly else list(lane.ready)
        embedder = None
        if self._store.needs_model(_changes(group)):
            embedder = self._model.embedder()
            if embedder is None:
                group = [prepared for prepared in group if not self._store.needs_model(prepared.changes)]
                if not group:
                    return "waiting"
        changes = _changes(group)
        self._batches, self._may_interrupt = 0, not lane.is_urgent
        try:
            outcome = self._store.commit(changes, embedder)
        except InterruptedCommitError:
            return "interrupted"
        except (StoreError, ModelError, UserError):
            raise
        except Exception as error:
            if len(group) > 1:
                log.exception("a group of %d files could not be committed; they are tried one by one", len(group))
                lane.singly = len(group)
                return "interrupted"
            log.exception("%s: could not be committed", self._indexer.shown(group[0].task))
            broken = self._indexer.broken(group[0].task, error)
            outcome = self._store.commit(broken.changes, None)
            self._settle(lane, group, [broken], outcome)
            return "committed"
        self._settle(lane, group, self._with_unembedded(group, outcome), outcome)
        return "committed"

    def _is_superseded(self, prepared: Prepared) -> bool:
        begun = self._under_way.get(prepared.task.key)
        return begun is None or begun.task is not prepared.task

    def _with_unembedded(self, group: list[Prepared], outcome: CommitOutcome) -> list[Prepared]:
        """Files whose texts got no vector are as they were; that is recorded, with a time to try again."""
        errors = {(root, path): error for root, path, error in outcome.unembedded}
        if not errors:
            return group
        settled = [
            self._indexer.unembedded(prepared, errors[prepared.task.key]) if prepared.task.key in errors else prepared
            for prepared in group
        ]
        failed = [change for prepared in settled if prepared.task.key in errors for change in prepared.changes]
        self._store.commit(failed, None)
        return settled

    def _settle(self, lane: Lane, group: list[Prepared], settled: list[Prepared], outcome: CommitOutcome) -> None:
        done = {id(prepared) for prepared in group}
        lane.ready = [prepared for prepared in lane.ready if id(prepared) not in done]
        lane.singly = max(0, lane.singly - 1)
        add_outcome(self.totals, outcome)
        for ticket in {id(ticket): ticket for prepared in settled for ticket in prepared.task.tickets}.values():
            add_outcome(ticket.outcome, outcome)
        for prepared in settled:
            begun = self._under_way.pop(prepared.task.key, None)
            self._count(prepared)
            self._queue.done(prepared.task)
            if begun is not None and begun.is_walked_over:
                self._post(Hint(prepared.task.root, prepared.task.action.path, deleted=begun.saw_deleted))

    def _count(self, prepared: Prepared) -> None:
        task, name = prepared.task, prepared.counts_as
        for ticket in task.tickets:
            ticket.last_path = self._indexer.shown(task)
        if name == "again":
            self._post(Hint(task.root, task.action.path))
            return
        if name == "failed":
            path = self._indexer.shown(task)
            log.warning("%s: %s: %s", path, prepared.reason, prepared.detail)
            for ticket in task.tickets:
                ticket.failures.append(Failure(path, prepared.reason, prepared.detail))
        for ticket in {id(ticket): ticket for ticket in task.tickets}.values():
            setattr(ticket.files, name, getattr(ticket.files, name) + 1)

    def _tell(self, lane: Lane, error: Exception) -> None:
        """Who waits for these files hears of the error; the files are tried again without them."""
        tasks = [begun.task for begun in lane.begun] + [prepared.task for prepared in lane.ready]
        tickets: dict[int, Ticket] = {id(ticket): ticket for task in tasks for ticket in task.tickets}
        for ticket in tickets.values():
            ticket.fail(error)

    # --- asked by the store while it embeds ---

    def stop_embedding(self) -> bool:
        """Between two batches. A lane that may be interrupted still does one batch a turn."""
        return self._is_stopping() or (self._may_interrupt and self._batches > 0 and self._is_wanted())

    def on_batch(self, _texts: int, _tokens: int) -> None:
        self._batches += 1


def _changes(group: list[Prepared]) -> list[Change]:
    return [change for prepared in group for change in prepared.changes]


def add_outcome(total: CommitOutcome, part: CommitOutcome) -> None:
    """Add the counters of a commit to others."""
    total.added += part.added
    total.kept += part.kept
    total.removed += part.removed
    total.texts_embedded += part.texts_embedded
    total.tokens_embedded += part.tokens_embedded
    total.seconds_embedding += part.seconds_embedding
