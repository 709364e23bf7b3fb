"""A ticket: what one request for a sync asked for, and the counters of what came of it.

What must stay true: a ticket is done when every scope it named was walked and every action planned there has ended,
whoever else had asked for the same file; nothing is counted twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ragd.store.types import CommitOutcome


@dataclass(slots=True)
class FileCounters:
    """How many files a sync saw and what became of them."""

    seen: int = 0
    indexed: int = 0
    unchanged: int = 0
    moved: int = 0
    forgotten: int = 0
    skipped: int = 0
    failed: int = 0

    def as_dict(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Failure:
    """One file that could not be indexed, for people."""

    path: str
    reason: str
    detail: str


@dataclass(slots=True)
class Ticket:
    """One request. Filled by the worker's thread, waited for by others."""

    clock: Callable[[], float] = time.monotonic
    files: FileCounters = field(default_factory=FileCounters)
    outcome: CommitOutcome = field(default_factory=CommitOutcome)
    failures: list[Failure] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    error: Exception | None = None
    last_path: str = ""
    """The file that was dealt with last, for a progress bar."""
    _scopes: int = 0
    _actions: int = 0
    _planned: int = 0
    _started: float = 0.0
    _seconds: float = 0.0
    _finished: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._started = self.clock()

    def expect_scopes(self, count: int) -> None:
        """Before posting: how many scopes this request will have walked. None: it is done at once."""
        self._scopes += count
        self._settle()

    def scope_walked(self, planned_actions: int) -> None:
        self._scopes -= 1
        self._actions += planned_actions
        self._planned += planned_actions
        self._settle()

    def action_ended(self) -> None:
        self._actions -= 1
        self._settle()

    def fail(self, error: Exception) -> None:
        """The request cannot be completed (the model cannot be loaded, the daemon stops)."""
        self.error = self.error or error
        self._seconds = self.clock() - self._started
        self._finished.set()

    def _settle(self) -> None:
        if self._scopes <= 0 and self._actions <= 0 and not self._finished.is_set():
            self._seconds = self.clock() - self._started
            self._finished.set()

    @property
    def finished(self) -> bool:
        return self._finished.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Whether it was done in time; raises what made it fail."""
        done = self._finished.wait(timeout_s)
        if done and self.error is not None:
            raise self.error
        return done

    def progress(self) -> dict[str, Any]:
        """Where it stands, for a progress bar."""
        return {
            "done": self._planned - self._actions,
            "total": self._planned,
            "path": self.last_path,
            "texts_embedded": self.outcome.texts_embedded,
        }

    def answer(self, chunks_total: int) -> dict[str, Any]:
        """The result of `sync` as the outer contract words it."""
        return {
            "files": self.files.as_dict(),
            "chunks": {
                "added": self.outcome.added,
                "kept": self.outcome.kept,
                "removed": self.outcome.removed,
                "total": chunks_total,
            },
            "embedded": {
                "texts": self.outcome.texts_embedded,
                "tokens": self.outcome.tokens_embedded,
                "seconds": round(self.outcome.seconds_embedding, 3),
            },
            "failures": [
                {"path": failure.path, "reason": failure.reason, "detail": failure.detail} for failure in self.failures
            ],
            "problems": self.problems,
            "seconds": round(self._seconds, 3),
        }
