"""The inbox: hints and requests in, scopes out. One mailbox; asking twice is asking once.

What must stay true: whatever is posted while the worker is busy is handed out afterwards; a place that keeps
changing is handed out all the same after `max_delay_ms`; what a hint claims is never passed on, only where to
look.

Two delays: quiet time since the last hint for a place (`debounce_ms`), and a ceiling since the first
(`max_delay_ms`). A place known only from a deletion waits twice the quiet time, and goes along earlier when
another place of its root is due: so a rename is seen as a new and an absent file in one walk. More than
`MAX_NAMES` places in one folder become the folder, more than `MAX_PLACES` in a root become the root. What was
deleted is kept apart as evidence for the plan, folder by folder.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from ragd.daemon.files import paths
from ragd.daemon.files.hints import Hint

MAX_NAMES = 128
MAX_PLACES = 512
MAX_EVIDENCE = 20_000
"""Folders with deletions remembered for a root; the oldest are dropped beyond that."""


Outcome = dict[str, Any]
"""What the worker made of a scope: the counters of `sync`."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Places of one root to look at, sorted, none below another; (b"",) is the whole root."""

    root: str
    places: tuple[bytes, ...]
    requests: tuple[Future[Outcome], ...] = ()
    number: int = 0
    """Counts up: evidence seen before this scope was handed out belongs to it."""


@dataclass(slots=True)
class _Pending:
    first_s: float
    last_s: float
    deletion_only: bool
    requests: list[Future[Outcome]] = field(default_factory=list)

    def absorb(self, other: _Pending) -> None:
        self.first_s = min(self.first_s, other.first_s)
        self.last_s = max(self.last_s, other.last_s)
        self.deletion_only = self.deletion_only and other.deletion_only
        self.requests += other.requests


@dataclass(slots=True)
class Evidence:
    """Where deletions were watched: folders that lost entries, and folders that went as a whole."""

    folders: dict[bytes, int] = field(default_factory=dict)
    trees: dict[bytes, int] = field(default_factory=dict)

    def add(self, hint: Hint, number: int) -> None:
        known, key = (self.trees, hint.path) if hint.folder else (self.folders, paths.parent(hint.path))
        known.pop(key, None)
        known[key] = number
        if len(known) > MAX_EVIDENCE:
            del known[next(iter(known))]

    def covers(self, path: bytes) -> bool:
        if paths.parent(path) in self.folders or path in self.trees:
            return True
        return any(folder in self.trees for folder in paths.ancestors(path))

    def forget(self, before: int) -> None:
        """Drop what is older than a scope that was dealt with."""
        for known in (self.folders, self.trees):
            for key in [key for key, number in known.items() if number < before]:
                del known[key]


class Inbox:
    """Thread-safe. `clock` gives seconds that never go back."""

    def __init__(
        self,
        *,
        debounce_ms: int = 250,
        max_delay_ms: int = 2000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._debounce_s = debounce_ms / 1000
        self._max_delay_s = max_delay_ms / 1000
        self._clock = clock
        self._changed = threading.Condition()
        self._pending: dict[str, dict[bytes, _Pending]] = {}
        self._evidence: dict[str, Evidence] = {}
        self._number = 0
        self._closed = False

    # --- in ---

    def post(self, hint: Hint) -> None:
        """From any thread; never blocks for long, never raises."""
        with self._changed:
            if self._closed:
                return
            now = self._clock()
            if hint.deleted:
                self._evidence.setdefault(hint.root, Evidence()).add(hint, self._number)
            self._add(hint.root, hint.path, _Pending(now, now, hint.deleted))
            self._changed.notify_all()

    def request(self, root: str, path: bytes = b"") -> Future[Outcome]:
        """Look there at once. The future gets the outcome of the scope that held it, or its error."""
        future: Future[Outcome] = Future()
        with self._changed:
            if self._closed:
                future.cancel()
                return future
            now = self._clock()
            self._add(root, path, _Pending(now, now, deletion_only=False, requests=[future]))
            self._changed.notify_all()
        return future

    def _add(self, root: str, path: bytes, new: _Pending) -> None:
        pending = self._pending.setdefault(root, {})
        known = pending.get(path)
        if known is not None:
            known.absorb(new)
            return
        for folder in paths.ancestors(path):
            above = pending.get(folder)
            if above is not None:
                above.absorb(new)
                return
        siblings = self._put(pending, path, new)
        if len(pending) > MAX_PLACES:
            self._collapse(pending, b"")
        elif siblings > MAX_NAMES:
            self._collapse(pending, paths.parent(path))

    def _put(self, pending: dict[bytes, _Pending], path: bytes, new: _Pending) -> int:
        """Add a place; what waits below it goes into it. Returns how many places wait in its folder."""
        below = [place for place in pending if paths.is_under(place, path)]
        for place in below:
            new.absorb(pending.pop(place))
        pending[path] = new
        folder = paths.parent(path)
        return sum(1 for place in pending if place and paths.parent(place) == folder)

    def _collapse(self, pending: dict[bytes, _Pending], folder: bytes) -> None:
        first = next(iter(pending.values()))
        whole = _Pending(first.first_s, first.first_s, deletion_only=True)
        whole.first_s = whole.last_s = min(entry.first_s for entry in pending.values())
        self._put(pending, folder, whole)

    # --- out ---

    def due(self, now: float | None = None) -> list[Scope]:
        """Take what is due: one scope a root, those with requests first, then the longest waiting."""
        with self._changed:
            now = self._clock() if now is None else now
            taken = [entry for root in list(self._pending) if (entry := self._take(root, now)) is not None]
        taken.sort(key=lambda entry: (not entry[1].requests, entry[0]))
        return [scope for _, scope in taken]

    def _take(self, root: str, now: float) -> tuple[float, Scope] | None:
        pending = self._pending[root]
        if not any(self._due_at(entry) <= now for entry in pending.values()):
            return None
        due = {
            path: entry
            for path, entry in pending.items()
            if self._due_at(entry) <= now or (entry.deletion_only and entry.last_s + self._debounce_s <= now)
        }
        for path in due:
            del pending[path]
        if not pending:
            del self._pending[root]
        self._number += 1
        requests = tuple(request for entry in due.values() for request in entry.requests)
        first_s = min(entry.first_s for entry in due.values())
        return first_s, Scope(root, paths.outermost(due), requests, self._number)

    def _due_at(self, entry: _Pending) -> float:
        if entry.requests:
            return entry.first_s
        quiet_s = self._debounce_s * (2 if entry.deletion_only else 1)
        return min(entry.last_s + quiet_s, entry.first_s + self._max_delay_s)

    def next_due(self) -> float | None:
        """When something will be due, on the inbox's clock; None when nothing waits."""
        with self._changed:
            return self._next_due()

    def _next_due(self) -> float | None:
        return min(
            (self._due_at(entry) for pending in self._pending.values() for entry in pending.values()),
            default=None,
        )

    def wait(self, timeout_s: float | None = None) -> bool:
        """Sleep until something is due, the inbox is closed, or the time is over. True when something is
        due."""
        deadline = None if timeout_s is None else self._clock() + timeout_s
        with self._changed:
            while not self._closed:
                now = self._clock()
                due = self._next_due()
                if due is not None and due <= now:
                    return True
                ends = [moment for moment in (due, deadline) if moment is not None]
                if deadline is not None and deadline <= now:
                    return False
                self._changed.wait(min(ends) - now if ends else None)
            return False

    def evidence(self, root: str) -> Callable[[bytes], bool]:
        """Whether a deletion was watched there, answered when it is called (also from hints not yet handed
        out)."""

        def covers(path: bytes) -> bool:
            with self._changed:
                known = self._evidence.get(root)
                return known is not None and known.covers(path)

        return covers

    def finish(self, scope: Scope, outcome: Outcome) -> None:
        """The scope was dealt with: its requests get the outcome, its evidence is used up."""
        with self._changed:
            known = self._evidence.get(scope.root)
            if known is not None and scope.root not in self._pending:
                known.forget(scope.number)  # while places wait, it may be theirs
        for request in scope.requests:
            if request.set_running_or_notify_cancel():
                request.set_result(outcome)

    def fail(self, scope: Scope, error: BaseException) -> None:
        """The scope ended in an error: its requests get it. Post it again if it is to be tried again."""
        for request in scope.requests:
            if request.set_running_or_notify_cancel():
                request.set_exception(error)

    @property
    def waiting(self) -> int:
        """Places that wait."""
        with self._changed:
            return sum(map(len, self._pending.values()))

    def close(self) -> None:
        """Wake `wait`, cancel the requests that wait, take nothing more. Idempotent."""
        with self._changed:
            self._closed = True
            requests = [
                request
                for pending in self._pending.values()
                for entry in pending.values()
                for request in entry.requests
            ]
            self._pending.clear()
            self._changed.notify_all()
        for request in requests:
            request.cancel()
