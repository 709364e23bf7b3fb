"""Which queries began before which commit, so that nothing they may still find is deleted under them.

What must stay true: a query registers before it opens its snapshot, and a commit moves the epoch on after its
transaction ended; so a query registered at epoch n sees every commit that led to n or to an epoch before it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Epochs:
    """Counts from 1 in each process: what an earlier process left behind has no queries any more.
    Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current = 1
        self._active: Counter[int] = Counter()

    @contextmanager
    def query(self) -> Iterator[None]:
        """Held by a query from before its snapshot opens until its last look at the vector index."""
        with self._lock:
            began = self._current
            self._active[began] += 1
        try:
            yield
        finally:
            with self._lock:
                self._active[began] -= 1
                if not self._active[began]:
                    del self._active[began]

    @property
    def next(self) -> int:
        """The epoch the commit in progress leads to. There is one writer, so it is certain."""
        with self._lock:
            return self._current + 1

    def advance(self) -> None:
        """The commit's transaction has ended."""
        with self._lock:
            self._current += 1

    @property
    def safe(self) -> int:
        """What became unneeded at this epoch or before it, no query needs any more."""
        with self._lock:
            return min(self._active, default=self._current)
