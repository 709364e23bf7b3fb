"""The one writer. A tick does one unit of work and says what it was; the thread only repeats ticks.

What must stay true: nothing else writes to the store while the daemon runs; what the person just saved goes before
the backlog, between two batches of it; an error ends one tick and is told, never the loop, and never loses a task.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from ragd.daemon.errors import UserError
from ragd.daemon.files.hints import Hint
from ragd.daemon.inbox import Inbox, Scope
from ragd.daemon.indexer import Indexer
from ragd.daemon.model import HeldModel
from ragd.daemon.pipeline import Pipeline
from ragd.daemon.root_set import RootSet
from ragd.daemon.surveyor import Surveyor
from ragd.daemon.task_queue import TaskQueue
from ragd.daemon.ticket import Ticket
from ragd.store.errors import ModelError, StoreError
from ragd.store.store import Store
from ragd.store.types import CommitOutcome

log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_WAIT_FOR_MODEL_S = 0.2
_WAIT_FOR_QUERIES_S = 0.1


@dataclass(frozen=True, slots=True)
class Tick:
    """What one tick did: walked, committed, interrupted, waiting, drained, live, pruned, failed or
    idle.

    `wait_s` is how long there is nothing to do unless the inbox says otherwise; None: until it does.
    """

    did: str
    wait_s: float | None = 0.0


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
        self.error: Exception | None = None
        """What the last tick ran into; None once one went well again."""
        self.on_walked: Callable[[str, list[bytes]], None] = lambda _root, _folders: None
        self._roots = roots
        self._surveyor = surveyor
        self._store = store
        self._model = model
        self._clock = clock
        self._stopping = threading.Event()
        self.pipeline = Pipeline(
            self.queue,
            indexer,
            store,
            model,
            post=inbox.post,
            is_wanted=self._is_wanted,
            is_stopping=self._stopping.is_set,
        )
        self._last_walk: tuple[float, float] | None = None
        self._tickets: dict[Future[dict[str, object]], Ticket] = {}
        self._tickets_lock = threading.Lock()
        self._pause_s = 0.0
        self._not_before = 0.0

    # --- asked from outside ---

    def request(self, places: list[tuple[str, bytes]], ticket: Ticket) -> Ticket:
        """Have places looked at and brought in; the ticket tells when."""
        ticket.expect_scopes(len(places))
        futures = []
        with self._tickets_lock:  # a walk that begins at once must find the ticket
            for root, place in places:
                future = self.inbox.request(root, place)
                self._tickets[future] = ticket
                futures.append(future)
        for future in futures:
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
        """Files that are planned and not yet done, and places not yet looked at."""
        return len(self.queue) + self.inbox.waiting

    @property
    def totals(self) -> CommitOutcome:
        """Counters since the start."""
        return self.pipeline.totals

    @property
    def problem(self) -> str:
        return "" if self.error is None else str(self.error) or type(self.error).__name__

    def last_walk(self) -> dict[str, object] | None:
        """When the last walk of a whole root ended, and how long it took."""
        if self._last_walk is None:
            return None
        ended, seconds = self._last_walk
        return {"ended": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ended)), "seconds": round(seconds, 3)}

    def stop(self) -> None:
        """Finish or abandon the current batch; `run` returns soon."""
        self._stopping.set()
        self.inbox.close()

    # --- the loop ---

    def run(self) -> None:
        """Tick until stopped."""
        while not self._stopping.is_set():
            tick = self.tick()
            if tick.wait_s == 0.0:
                continue
            if self.inbox.waiting and tick.did in ("failed", "waiting"):
                self._stopping.wait(tick.wait_s)  # what waits in the inbox would only wake us at once
            else:
                self.inbox.wait(tick.wait_s)
        self.queue.drop_all(StoreError("the daemon is stopping"))

    def tick(self) -> Tick:
        """One unit of work. Never raises for what can go wrong with files, store or model."""
        now = self._clock()
        if now < self._not_before:
            return Tick("waiting", self._not_before - now)
        try:
            tick = self._do_something()
        except (StoreError, ModelError, UserError) as error:
            if str(error) != self.problem:
                log.error("%s", error)  # once: the same error is not repeated in the log
            return self._pause(error)
        except Exception as error:
            log.exception("the worker met an error it does not know")
            return self._pause(error)
        if tick.did not in ("waiting", "idle"):
            self._pause_s = 0.0
            self.error = None
        return tick

    def _pause(self, error: Exception) -> Tick:
        self.error = error
        self.queue.tell(error)
        self._pause_s = min(_LONGEST_PAUSE_S, max(_FIRST_PAUSE_S, 2 * self._pause_s))
        self._not_before = self._clock() + self._pause_s
        return Tick("failed", self._pause_s)

    def _do_something(self) -> Tick:
        scopes = self.inbox.due()
        if scopes:
            for number, scope in enumerate(scopes):
                try:
                    self._walk(scope)
                except BaseException:
                    self._post_again(scopes[number:])
                    raise
            return Tick("walked")
        waiting = False
        for urgent in (True, False):
            did = self.pipeline.advance(urgent=urgent)
            if did not in (None, "waiting"):
                return Tick(did or "")
            waiting = waiting or did is not None
        if waiting:
            return Tick("waiting", _WAIT_FOR_MODEL_S)
        if not self._store.drain():
            return Tick("drained", _WAIT_FOR_QUERIES_S)
        if self._forget_unconfigured():
            return Tick("committed")
        if self._store.building is not None and self._may_finish():
            return self._finish_building()
        if self._store.prune_cache():
            return Tick("pruned")
        return Tick("idle", None)

    def _is_wanted(self) -> bool:
        """Whether the backlog should make room now."""
        if self._stopping.is_set() or self.queue.has_urgent():
            return True
        due = self.inbox.next_due()
        return due is not None and due <= self._clock()

    # --- walking ---

    def _walk(self, scope: Scope) -> None:
        root = self._roots.by_name[scope.root]
        with self._tickets_lock:
            found = [self._tickets.pop(request) for request in scope.requests if request in self._tickets]
        tickets = list({id(ticket): ticket for ticket in found}.values())
        is_whole = scope.places == (b"",)
        began = self._clock()
        planned = 0
        try:
            survey = self._surveyor.survey(root, scope.places, self.inbox.evidence(scope.root))
            if survey is None:
                for ticket in tickets:
                    ticket.problems.append(root.problem)
            else:
                planned = self.queue.put(root.name, survey.actions(), tickets, is_urgent=not is_whole)
                self._surveyor.settle(survey, scope.places)
                self.pipeline.walked(root.name, scope.places, self.inbox.evidence(root.name))
                if is_whole:
                    self.on_walked(root.name, survey.walk.folders)
                for ticket in tickets:
                    ticket.files.seen += survey.plan.seen
                    ticket.files.unchanged += survey.plan.unchanged
                    if survey.plan.held or survey.walk.unread:
                        ticket.problems.append(root.problem)
        except Exception as error:
            for ticket in found:
                ticket.fail(error)
            self.inbox.fail(scope, error)
            raise
        if is_whole:
            self._last_walk = (time.time(), self._clock() - began)
            root.is_walked = True
        counted = set()
        for ticket in found:
            ticket.scope_walked(0 if id(ticket) in counted else planned)
            counted.add(id(ticket))
        self.inbox.finish(scope, {})

    def _post_again(self, scopes: list[Scope]) -> None:
        """These were taken and not walked: nobody else would look there before the next whole walk."""
        for scope in scopes:
            for place in scope.places:
                self.inbox.post(Hint(scope.root, place))

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
        blocked = ("unavailable", "mass_deletion")
        waits = [root for root in self._roots if not root.is_walked or root.state in blocked]
        return not waits and not self.pending

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
