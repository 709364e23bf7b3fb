"""The pool of parsing children: jobs in, futures of cuts out.

What must stay true: every future that was given out ends (with a cut, ParseFailedError or ParsePoolError);
one bad file costs its own time limit and a child, never another file.
"""

from __future__ import annotations

import os
import queue
import threading
from concurrent.futures import Future
from typing import Protocol

from ragd.chunkers.records import Cut, ModelBudget
from ragd.daemon.parsing.child import load_cutter, run_job
from ragd.daemon.parsing.limits import ParseLimits
from ragd.daemon.parsing.process import ParseChild
from ragd.daemon.parsing.wire import CounterSpec, Failed, ParseFailedError, ParseJob, ParsePoolError, Setup

CUTTER = "ragd.chunkers.cut:cut"


class Parser(Protocol):
    """Cuts files. The tokenizer and the budget are fixed: another model needs another one."""

    def submit(self, job: ParseJob) -> Future[Cut]:
        """The future raises ParseFailedError (this file) or ParsePoolError (any file). Jobs wait in memory
        with their bytes: the caller bounds how many. Raises ParsePoolError when closed."""

    def close(self) -> None:
        """Idempotent; what is not done ends with ParsePoolError."""


class InlinePool:
    """The same without processes and limits: for tests, and for a file the person asks to preview."""

    def __init__(self, counter: CounterSpec, budget: ModelBudget, *, cutter: str = CUTTER) -> None:
        self._counter = counter.build()
        self._budget = budget
        self._cutter = load_cutter(cutter)
        self._is_closed = False

    def submit(self, job: ParseJob) -> Future[Cut]:
        if self._is_closed:
            raise ParsePoolError("The parsing pool is closed.")
        future: Future[Cut] = Future()
        try:
            answer = run_job(job, self._cutter, self._counter, self._budget)
        except MemoryError:
            answer = Failed("memory", "parsing it takes more memory than there is")
        if isinstance(answer, Failed):
            future.set_exception(ParseFailedError(answer.reason, answer.detail))
        else:
            future.set_result(answer)
        return future

    def close(self) -> None:
        self._is_closed = True


class ParsePool:
    """`workers` threads, each with a child of its own. Children start with the first job and all but one of
    them end when there is nothing to do for `idle_seconds`."""

    def __init__(
        self,
        limits: ParseLimits,
        counter: CounterSpec,
        budget: ModelBudget,
        *,
        workers: int = 1,
        idle_seconds: float = 60.0,
        cutter: str = CUTTER,
    ) -> None:
        setup = Setup(counter=counter, budget=budget, limits=limits, cutter=cutter)
        is_debugging = bool(os.environ.get("RAGD_DEBUG"))
        self._jobs: queue.SimpleQueue[tuple[ParseJob, Future[Cut]] | None] = queue.SimpleQueue()
        self._children = [ParseChild(setup, os.environ, is_debugging=is_debugging) for _ in range(workers)]
        self._idle_seconds = idle_seconds
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, args=(child, number), name=f"ragd-parse-{number}", daemon=True)
            for number, child in enumerate(self._children)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def child_starts(self) -> int:
        """How many child processes were started so far: more than the workers when some were lost."""
        return sum(child.starts for child in self._children)

    def submit(self, job: ParseJob) -> Future[Cut]:
        future: Future[Cut] = Future()
        with self._lock:
            if self._closing.is_set():
                raise ParsePoolError("The parsing pool is closed.")
            self._jobs.put((job, future))
        return future

    def close(self) -> None:
        with self._lock:
            if self._closing.is_set():
                return
            self._closing.set()
            for _ in self._threads:
                self._jobs.put(None)
        for thread, child in zip(self._threads, self._children, strict=True):
            while thread.is_alive():
                child.kill()
                thread.join(0.05)

    def _work(self, child: ParseChild, number: int) -> None:
        while True:
            try:
                item = self._jobs.get(timeout=self._idle_seconds)
            except queue.Empty:
                if number > 0:
                    child.stop()
                continue
            if item is None:
                child.stop()
                return
            job, future = item
            if future.set_running_or_notify_cancel():
                self._finish(child, job, future)

    def _finish(self, child: ParseChild, job: ParseJob, future: Future[Cut]) -> None:
        if self._closing.is_set():
            future.set_exception(ParsePoolError("The parsing pool is closed."))
            return
        try:
            cut = child.cut(job)
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it, and the thread must go on
            closed = ParsePoolError("The parsing pool was closed meanwhile.")
            future.set_exception(closed if self._closing.is_set() else error)
        else:
            future.set_result(cut)
