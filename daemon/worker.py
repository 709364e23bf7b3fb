"""The one writer. A tick does one unit of work and says what it was; the thread only repeats ticks.

What must stay true: nothing else writes to the store while the daemon runs; what the person just saved goes before
the backlog, between two batches of it; an error ends one tick and is told, never the loop, and never loses a task.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from ragd.daemon.errors import ModelUnavailableError
from ragd.daemon.files.hints import Hint
from ragd.daemon.inbox import Inbox, Scope
from ragd.daemon.indexer import Begun, Indexer, Prepared
from ragd.daemon.model import HeldModel
from ragd.daemon.root_set import RootSet
from ragd.daemon.surveyor import Surveyor
from ragd.daemon.task_queue import TaskQueue
from ragd.daemon.ticket import Failure, Ticket
from ragd.store.errors import InterruptedCommitError, StoreError
from ragd.store.store import Store
from ragd.store.types import Change, CommitOutcome, FailFile

log = logging.getLogger(__name__)

GROUP_TEXTS = 128
"""A commit is made when so many chunks are ready: large enough to cost little, small enough to be done soon."""
GROUP_FILES = 200
AHEAD_FILES = 48
AHEAD_BYTES = 32_000_000
"""Files read and handed to the parsing children before they are needed."""
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_WAIT_FOR_MODEL_S = 0.2
_WAIT_FOR_QUERIES_S = 0.1


@dataclass(frozen=True, slots=True)
class Tick:
    """What one tick did: walked, committed, interrupted, waiting, drained, live, failed or idle.

    `wait_s` is how long there is nothing to do unless the inbox says otherwise; None: until it does.
    """

    did: str
    wait_s: float | None = 0.0


@dataclass(slots=True)
class Lane:
    """Tasks under way, in order: read or being cut, then ready to be committed."""

    is_urgent: bool
    begun: deque[Begun] = field(default_factory=deque)
    ready: list[Prepared] = field(default_factory=list)

    @property
    def texts(self) -> int:
        return sum(prepared.texts for prepared in self.ready)

    def __len__(self) -> int:
        return len(self.begun) + len(self.ready)


class Worker:
    """Built by the engine. `tick` is called by one thread at a time; the rest may be called by any."""

    def __init__(
        self,
        *,
        inbox: Inbox,
        roots: RootSet,
        surveyor: Surveyor,
        indexer: Indexer,
        store: Store,
        model: HeldModel,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.inbox = inbox
        self.queue = TaskQueue()
        self.totals = CommitOutcome()
        self.problem = ""
        self._last_walk: dict[str, float] | None = None
        self._roots = roots
        self._surveyor = surveyor
        self._indexer = indexer
        self._store = store
        self._model = model
        self._clock = clock
        self.on_walked: Callable[[str, list[bytes]], None] = lambda _root, _folders: None
        self._lanes = {True: Lane(is_urgent=True), False: Lane(is_urgent=False)}
        self._tickets: dict[Future[dict[str, object]], Ticket] = {}
        self._tickets_lock = threading.Lock()
        self._pause_s = 0.0
        self._not_before = 0.0
        self._stopping = threading.Event()
        self._batches = 0
        self._may_interrupt = False

    # --- asked from outside ---

    def request(self, places: list[tuple[str, bytes]], ticket: Ticket) -> Ticket:
        """Have places looked at and brought in; the ticket tells when."""
        ticket.expect_scopes(len(places))
        for root, place in places:
            future = self.inbox.request(root, place)
            with self._tickets_lock:
                self._tickets[future] = ticket
            future.add_done_callback(self._request_ended)
        return ticket

    def _request_ended(self, future: Future[dict[str, object]]) -> None:
        """The inbox was closed, or the walk failed: the ticket must not wait for ever."""
        error = None if future.cancelled() else future.exception()
        if future.cancelled() or error is not None:
            with self._tickets_lock:
                ticket = self._tickets.pop(future, None)
            if ticket is not None:
                ticket.fail(error if isinstance(error, Exception) else StoreError("the daemon is stopping"))

    @property
    def pending(self) -> int:
        """Files that are planned and not yet done."""
        return len(self.queue)

    def last_walk(self) -> dict[str, object] | None:
        """When the last walk of a whole root ended, and how long it took."""
        if self._last_walk is None:
            return None
        ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._last_walk["ended"]))
        return {"ended": ended, "seconds": self._last_walk["seconds"]}

    @property
    def is_busy(self) -> bool:
        return len(self.queue) > 0 or self.inbox.waiting > 0

    def stop(self) -> None:
        """Finish or abandon the current batch; `run` returns soon."""
        self._stopping.set()
        self.inbox.close()

    # --- the loop ---

    def run(self) -> None:
        """Tick until stopped."""
        while not self._stopping.is_set():
            tick = self.tick()
            if tick.wait_s != 0.0 and not self._stopping.is_set():
                self.inbox.wait(tick.wait_s)
        self.queue.drop_all(StoreError("the daemon is stopping"))

    def tick(self) -> Tick:
        """One unit of work. Never raises for what can go wrong with files, store or model."""
        now = self._clock()
        if now < self._not_before:
            return Tick("waiting", self._not_before - now)
        try:
            tick = self._do_something()
        except ModelUnavailableError as error:
            return self._pause(error)
        except StoreError as error:
            return self._pause(error)
        except Exception as error:
            log.exception("the worker met an error it does not know")
            return self._pause(error)
        if tick.did not in ("waiting", "idle"):
            self._pause_s = 0.0
            self.problem = ""
        return tick

    def _pause(self, error: Exception) -> Tick:
        if str(error) != self.problem:
            log.error("%s", error)  # once: the same error is not repeated in the log
        self.problem = str(error)
        self._pause_s = min(_LONGEST_PAUSE_S, max(_FIRST_PAUSE_S, 2 * self._pause_s))
        self._not_before = self._clock() + self._pause_s
        return Tick("failed", self._pause_s)

    def _do_something(self) -> Tick:
        scopes = self.inbox.due()
        if scopes:
            for scope in scopes:
                self._walk(scope)
            return Tick("walked")
        for urgent in (True, False):
            lane = self._lanes[urgent]
            tick = self._advance(lane)
            if tick is not None and tick.did != "waiting":
                return tick
            if tick is not None and not self.queue.has_urgent():
                return tick
        if not self._store.drain():
            return Tick("drained", _WAIT_FOR_QUERIES_S)
        if self._forget_unconfigured():
            return Tick("committed")
        if self._store.building is not None and self._may_finish():
            return self._finish_building()
        return Tick("idle", None)

    # --- walking ---

    def _walk(self, scope: Scope) -> None:
        root = self._roots.by_name[scope.root]
        with self._tickets_lock:
            found = [self._tickets.pop(request) for request in scope.requests if request in self._tickets]
        tickets = list({id(ticket): ticket for ticket in found}.values())
        is_whole = scope.places == (b"",)
        began = self._clock()
        try:
            survey = self._surveyor.survey(root, scope.places, self.inbox.evidence(scope.root))
            planned = 0
            if survey is None:
                for ticket in tickets:
                    ticket.problems.append(root.problem)
            else:
                planned = self.queue.put(root.name, survey.actions(), tickets, is_urgent=not is_whole)
                self._surveyor.settle(survey, scope.places)
                if is_whole:
                    self.on_walked(root.name, survey.walk.folders)
                for ticket in tickets:
                    ticket.files.seen += survey.plan.seen
                    ticket.files.unchanged += survey.plan.unchanged
                    if survey.plan.problem:
                        ticket.problems.append(root.problem)
        except BaseException as error:
            for ticket in found:
                ticket.fail(error if isinstance(error, Exception) else StoreError("stopped"))
            self.inbox.fail(scope, error)
            raise
        if is_whole:
            self._last_walk = {"ended": time.time(), "seconds": round(self._clock() - began, 3)}
            root.is_walked = True
        counted = set()
        for ticket in found:
            ticket.scope_walked(0 if id(ticket) in counted else planned)
            counted.add(id(ticket))
        self.inbox.finish(scope, {})

    # --- indexing ---

    def _advance(self, lane: Lane) -> Tick | None:
        """Bring some tasks of a lane to their commit; None when it has none."""
        self._read_ahead(lane)
        if not len(lane):
            return None
        while lane.begun and lane.texts < GROUP_TEXTS and len(lane.ready) < GROUP_FILES:
            lane.ready.append(self._indexer.finish(lane.begun[0]))
            lane.begun.popleft()
            self._read_ahead(lane)
            if not lane.is_urgent and self._is_wanted():
                return Tick("interrupted")
        return self._commit(lane)

    def _read_ahead(self, lane: Lane) -> None:
        size_bytes = sum(begun.size_bytes for begun in lane.begun)
        if len(lane.begun) >= AHEAD_FILES or size_bytes >= AHEAD_BYTES:
            return
        for task in self.queue.take(urgent=lane.is_urgent):
            begun = self._indexer.begin(task)
            lane.begun.append(begun)
            size_bytes += begun.size_bytes
            if len(lane.begun) >= AHEAD_FILES or size_bytes >= AHEAD_BYTES:
                return

    def _is_wanted(self) -> bool:
        """Whether the backlog should make room now."""
        if self._stopping.is_set() or self.queue.has_urgent():
            return True
        due = self.inbox.next_due()
        return due is not None and due <= self._clock()

    def stop_embedding(self) -> bool:
        """Asked by the store between two batches. A lane that may be interrupted still does one batch a turn."""
        return self._stopping.is_set() or (self._may_interrupt and self._batches > 0 and self._is_wanted())

    def on_batch(self, _texts: int, _tokens: int) -> None:
        self._batches += 1

    def _commit(self, lane: Lane) -> Tick:
        group = lane.ready
        embedder = None
        if any(prepared.texts for prepared in group):
            embedder = self._model.embedder()
            if embedder is None:
                group = [prepared for prepared in group if not prepared.texts]
                if not group:
                    return Tick("waiting", _WAIT_FOR_MODEL_S)
        changes: list[Change] = [change for prepared in group for change in prepared.changes]
        self._batches, self._may_interrupt = 0, not lane.is_urgent
        try:
            outcome = self._store.commit(changes, embedder)
        except InterruptedCommitError:
            return Tick("interrupted")
        done = {id(prepared) for prepared in group}
        lane.ready = [prepared for prepared in lane.ready if id(prepared) not in done]
        self._count(group, outcome)
        return Tick("committed")

    def _count(self, group: list[Prepared], outcome: CommitOutcome) -> None:
        errors = {(root, path): error for root, path, error in outcome.unembedded}
        if errors:
            group = [
                self._indexer.unembedded(prepared, errors[prepared.task.key])
                if prepared.task.key in errors
                else prepared
                for prepared in group
            ]
            failed: list[Change] = [
                change
                for prepared in group
                for change in prepared.changes
                if prepared.task.key in errors and isinstance(change, FailFile)
            ]
            self._store.commit(failed, None)
        _add(self.totals, outcome)
        tickets = {id(ticket): ticket for prepared in group for ticket in prepared.task.tickets}
        for ticket in tickets.values():
            _add(ticket.outcome, outcome)
        for prepared in group:
            task = prepared.task
            if prepared.counts_as == "again":
                self.inbox.post(Hint(task.root, task.action.path))
            elif prepared.counts_as == "failed":
                path = self._indexer.shown(task)
                log.warning("%s: %s: %s", path, prepared.reason, prepared.detail)
                for ticket in task.tickets:
                    ticket.failures.append(Failure(path, prepared.reason, prepared.detail))
            for ticket in task.tickets:
                if prepared.counts_as != "again":
                    name = prepared.counts_as
                    setattr(ticket.files, name, getattr(ticket.files, name) + 1)
            self.queue.done(task)

    # --- when there is nothing else to do ---

    def _forget_unconfigured(self) -> bool:
        """Forget some files of roots that are no longer configured. Their vectors stay cached for a while."""
        for generation in filter(None, (self._store.live, self._store.building)):
            for name in self._store.catalog.roots(generation.id):
                if name not in self._roots.by_name:
                    return self._store.forget_root(name) > 0
        return False

    def _may_finish(self) -> bool:
        """Whether every file is in the generation that is being built."""
        waits = [root for root in self._roots if not root.is_walked or root.state in ("unavailable", "mass_deletion")]
        return not waits and not self.is_busy

    def _finish_building(self) -> Tick:
        if self._store.finish_building():
            log.info("everything is embedded with %s now", self._model.identity.name)
            return Tick("live")
        for name in self._roots.by_name:
            self.inbox.post(Hint(name, b""))
        return Tick("walked")

    def retry_due(self, now_ns: int) -> int:
        """Post the files whose pause is over."""
        rows = self._store.catalog.retry_due(self._store.target.id, now_ns)
        for row in rows:
            if row.root in self._roots.by_name:
                self.inbox.post(Hint(row.root, row.path))
        return len(rows)

    def place_of(self, path: bytes) -> tuple[str, bytes] | None:
        """Root and place of an absolute path; None outside of all roots."""
        found = self._roots.find(path)
        return None if found is None else (found[0].name, found[1])


def _add(total: CommitOutcome, part: CommitOutcome) -> None:
    total.added += part.added
    total.kept += part.kept
    total.removed += part.removed
    total.texts_embedded += part.texts_embedded
    total.tokens_embedded += part.tokens_embedded
    total.seconds_embedding += part.seconds_embedding
