"""Starting, asking, restarting and stopping the Chroma child.

What must stay true: never two children on one folder (a new one starts only after the old one was reaped, and
across daemons the inherited lock sees to it), no child is killed by us while it may be writing, and a child
that keeps dying is started again with growing pauses only (FAULTS D7, F15).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

from ragd.store.chroma import health
from ragd.store.chroma.wire import Answer, Request, decode_answer, encode
from ragd.store.errors import DamagedError, StoreError

CHILD = (sys.executable, "-P", "-m", "ragd.store.chroma.child")
_PAUSES_S = (0.0, 0.0, 0.2, 1.0, 5.0, 30.0)
"""Before the start that follows this many deaths in a row; longer ones are not slept through but refused."""
_SLEEP_THROUGH_S = 1.0
_ATTEMPTS = 3
_WAIT_TURN_S = 0.2
_FAULT_LIMIT = 3
_FAULTS = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE})
_REAP_S = 30.0


def child_environment(environment: dict[str, str]) -> dict[str, str]:
    """The daemon's environment without what would steer Chroma or Python: Chroma reads its settings from
    it."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(("CHROMA", "PYTHON", "OTEL_", "IS_PERSISTENT", "PERSIST_DIRECTORY"))
    }
    if "PYTHONPATH" in environment:
        kept["PYTHONPATH"] = environment["PYTHONPATH"]
    return kept | {"ANONYMIZED_TELEMETRY": "False"}


def how_it_ended(code: int) -> str:
    """An exit code as `subprocess` gives it, in words."""
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


class ChromaProcess:
    """One child at a time. Not thread-safe: the caller takes turns (`ragd.store.turns`)."""

    def __init__(
        self,
        folder: Path,
        *,
        lock_fd: int | None,
        documents: bool,
        answer_timeout_s: float = 300.0,
        command: Sequence[str] = CHILD,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder = folder
        self._lock_fd = lock_fd
        self._documents = documents
        self._answer_timeout_s = answer_timeout_s
        self._command = tuple(command)
        self._clock = clock
        self._sleep = sleep
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._log: IO[bytes] | None = None
        self._number = 0
        self._unanswered = False
        self._deaths = 0
        self._faults = 0
        self._last_words = ""
        self._not_before = 0.0
        self._damage: str | None = None
        self._is_ending = threading.Event()
        self.starts = 0
        """How many children were started."""
        self.max_batch = 0
        """The most rows Chroma takes in one call; 0 until a child has said so."""

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def ask(self, request: Request) -> Answer:
        """One request, asked again if the child died over it: every request may be done twice.

        Raises DamagedError when the folder is damaged (for good, until `forget_damage`), StoreError
        otherwise.
        """
        for _ in range(_ATTEMPTS):
            if self._damage is not None:
                raise DamagedError(self._damage)
            self._refuse_if_ending()
            try:
                if self._connection is None:
                    self._start()
                answer = self._exchange(request)
            except (EOFError, ConnectionError):
                self._bury()
                continue
            self._deaths = self._faults = 0
            return self._checked(answer)
        if self._damage is not None:
            raise DamagedError(self._damage)
        raise StoreError(
            f"Chroma's process {self._last_words}, {_ATTEMPTS} times over the same request ({request.operation})"
        )

    def end_soon(self) -> None:
        """From any thread, without a turn: nothing more is asked, and whoever waits for an answer waits no longer.
        The child finishes what it does; `stop` is still to be called."""
        self._is_ending.set()

    def _refuse_if_ending(self) -> None:
        if self._is_ending.is_set():
            raise StoreError("the vector index is being closed")

    def stop(self, wait_s: float) -> bool:
        """Let the child finish, close and end. False if it is still at it after `wait_s` seconds: it then
        ends by itself, and holds the lock until it has. Idempotent."""
        process, self._process = self._process, None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if self._log is not None:
            self._log.close()
            self._log = None
        self._unanswered = False
        if process is None:
            return True
        try:
            process.wait(wait_s)
        except subprocess.TimeoutExpired:
            self._process = process
            return False
        return True

    def forget_damage(self) -> None:
        """The folder was replaced: start from nothing."""
        self._damage = None
        self._deaths = self._faults = 0
        self._not_before = 0.0

    def _start(self) -> None:
        """Start a child and wait until it has the folder open. Raises EOFError when it died over that."""
        self._wait_for_the_last_one()
        problems = health.folder_problems(self._folder)
        if problems:
            self._found_damage("; ".join(problems))
        ours, theirs = socket.socketpair()
        passed = [theirs.fileno()]
        command = [
            *self._command,
            str(self._folder),
            f"--socket={theirs.fileno()}",
            f"--parent={os.getpid()}",
        ]
        if self._lock_fd is not None:
            passed.append(self._lock_fd)
            command.append(f"--lock={self._lock_fd}")
        if self._documents:
            command.append("--documents")
        log = tempfile.TemporaryFile(mode="a+b")  # noqa: SIM115 - lives as long as the child
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",  # Chroma reads settings from a .env file in the current folder
                env=child_environment(dict(os.environ)),
                pass_fds=passed,
            )
        except OSError as error:
            ours.close()
            log.close()
            raise StoreError(f"Chroma's process cannot be started: {error}") from error
        finally:
            theirs.close()
        self.starts += 1
        self._log = log
        self._connection = Connection(ours.detach())
        self.max_batch = self._checked(self._exchange(Request(0, "hello"))).count

    def _wait_for_the_last_one(self) -> None:
        if self._process is not None:
            try:
                self._process.wait(_SLEEP_THROUGH_S)
            except subprocess.TimeoutExpired:
                raise StoreError(f"Chroma's process {self._process.pid} is still finishing its last write") from None
            self._process = None
        pause_s = self._not_before - self._clock()
        if pause_s > _SLEEP_THROUGH_S:
            raise StoreError(
                f"Chroma's process {self._last_words}, {self._deaths} times in a row; next try in {pause_s:.0f} s"
            )
        if pause_s > 0:
            self._sleep(pause_s)

    def _exchange(self, request: Request) -> Answer:
        connection = self._connection
        if connection is None:
            raise EOFError
        if self._unanswered:
            self._receive(connection, self._number)
        self._number += 1
        request.number = self._number
        self._unanswered = True
        connection.send_bytes(encode(request))
        return self._receive(connection, self._number)

    def _receive(self, connection: Connection, number: int) -> Answer:
        left_s = self._answer_timeout_s
        while not connection.poll(min(_WAIT_TURN_S, left_s)):
            self._refuse_if_ending()
            left_s -= _WAIT_TURN_S
            if left_s <= 0:
                raise StoreError(
                    f"Chroma has not answered for {self._answer_timeout_s:.0f} s; does another program have "
                    f"{self._folder / health.DATABASE} open?"
                )
        answer = decode_answer(connection.recv_bytes())
        if answer.number != number:
            raise StoreError(f"Chroma's process answered request {answer.number} instead of {number}")
        self._unanswered = False
        return answer

    def _checked(self, answer: Answer) -> Answer:
        if answer.problem == "damaged":
            self._found_damage(answer.message)
        if answer.problem:
            raise StoreError(f"Chroma: {answer.message}")
        return answer

    def _found_damage(self, message: str) -> None:
        self._damage = f"the vector index in {self._folder} is damaged: {message}"
        self.stop(_REAP_S)
        raise DamagedError(self._damage)

    def _bury(self) -> None:
        """The child closed its end or is gone: reap it before there may be another."""
        process, self._process = self._process, None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._unanswered = False
        if process is None:
            return
        try:
            code = process.wait(_REAP_S)
        except subprocess.TimeoutExpired:
            process.kill()  # It closed its end: it can answer nothing, and must not live beside the next.
            code = process.wait()
        self._deaths += 1
        self._last_words = how_it_ended(code)
        tail = self._log_tail()
        pause_s = _PAUSES_S[min(self._deaths, len(_PAUSES_S) - 1)]
        self._not_before = self._clock() + pause_s
        if -code in _FAULTS or "panicked" in tail:
            self._faults += 1
            if self._faults >= _FAULT_LIMIT:
                self._damage = (
                    f"the vector index in {self._folder} is damaged: Chroma's process {self._last_words} "
                    f"{self._faults} times in a row while it worked on it"
                )

    def _log_tail(self) -> str:
        if self._log is None:
            return ""
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - 2000))
        tail = self._log.read().decode("utf-8", "replace").strip()
        self._log.close()
        self._log = None
        return tail
