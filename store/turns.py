"""Taking turns at something only one thread may use: questions go before bulk work.

What must stay true: one thread at a time; a waiting question goes next, but after `patience` questions in a
row that went past waiting bulk work, that work gets one turn, so nobody waits for ever.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Turns:
    """A mutex with two classes of waiters. Not reentrant."""

    def __init__(self, *, patience: int = 16, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._clock = clock
        self._condition = threading.Condition()
        self._busy = False
        self._questions_waiting = 0
        self._bulk_waiting = 0
        self._passed = 0
        self._last_question_at: float | None = None

    @contextmanager
    def question(self) -> Iterator[None]:
        """The turn of somebody who waits for an answer."""
        with self._condition:
            self._last_question_at = self._clock()
            self._questions_waiting += 1
            try:
                while self._busy or (self._bulk_waiting and self._passed >= self._patience):
                    self._condition.wait()
            finally:
                self._questions_waiting -= 1
                # Somebody else's condition may now hold although nothing was released.
                self._condition.notify_all()
            self._busy = True
            self._passed = self._passed + 1 if self._bulk_waiting else 0
        try:
            yield
        finally:
            self._last_question_at = self._clock()
            self._leave()

    @contextmanager
    def bulk(self) -> Iterator[None]:
        """The turn of one small piece of bulk work."""
        with self._condition:
            self._bulk_waiting += 1
            try:
                while self._busy or (self._questions_waiting and self._passed < self._patience):
                    self._condition.wait()
            finally:
                self._bulk_waiting -= 1
                self._condition.notify_all()
            self._busy = True
            self._passed = 0
        try:
            yield
        finally:
            self._leave()

    def questions_within(self, seconds: float) -> bool:
        """Is a question waiting, or was there one within the last `seconds`?"""
        with self._condition:
            if self._questions_waiting:
                return True
            return self._last_question_at is not None and self._clock() - self._last_question_at < seconds

    def _leave(self) -> None:
        with self._condition:
            self._busy = False
            self._condition.notify_all()
