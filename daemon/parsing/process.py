"""One parsing child as the daemon holds it: started when needed, one file at a time, killed when it hangs.

What must stay true: `cut` ends within the time limit whatever the file does; a child inherits no descriptor
but its end of the pipe (above all not the one that locks the state folder).
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing.connection import Connection

from ragd.chunkers.records import Cut
from ragd.daemon.parsing import wire

_START_SECONDS = 120.0
"""Importing the parsers from a cold, slow disk on a busy machine."""

_KEPT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "PYTHONPATH",
    "PYTHONHOME",
    "TZ",
    "LD_LIBRARY_PATH",
    "TMPDIR",
)


class ParseChild:
    """Not thread-safe but for `kill`."""

    def __init__(self, setup: wire.Setup, environment: Mapping[str, str], *, is_debugging: bool = False) -> None:
        self._setup = setup
        self._environment = child_environment(environment)
        self._stderr = None if is_debugging else subprocess.DEVNULL
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._lock = threading.Lock()
        self.starts = 0

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Idempotent. Raises ParsePoolError when the child does not get ready."""
        if self.is_running:
            return
        self.stop()
        ours, theirs = socket.socketpair()
        with theirs:
            # a child that stops in the middle of a frame must not hold its thread for ever
            seconds = struct.pack("ll", int(self._setup.limits.parse_seconds) + 1, 0)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, seconds)
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "ragd.daemon.parsing.child", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._stderr,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                cwd="/",
                env=self._environment,
            )
        with self._lock:
            self._process, self._connection = process, Connection(ours.detach())
        self.starts += 1
        self._wait_until_ready(self._connection)

    def _wait_until_ready(self, connection: Connection) -> None:
        try:
            connection.send_bytes(wire.encode_setup(self._setup))
            if not connection.poll(_START_SECONDS):
                raise TimeoutError(f"it was not ready after {_START_SECONDS:.0f} s")
            answer, _ = wire.decode_answer(connection.recv_bytes(1_000_000))
        except (EOFError, OSError, ValueError) as error:
            ended = self.stop()
            raise wire.ParsePoolError(f"A parsing process does not start ({ended}): {error}") from error
        if answer is not None:
            self.stop()
            detail = answer.detail if isinstance(answer, wire.Failed) else "it answered what was not asked"
            raise wire.ParsePoolError(f"A parsing process does not start: {detail}")

    def cut(self, job: wire.ParseJob) -> Cut:
        """Cuts one file, in at most the time limit. Raises ParseFailedError, after which the child may be
        gone and the next call starts another; ParsePoolError when none starts."""
        frame = wire.encode_job(job)
        self.start()
        try:
            answer = self._asked(frame, job)
        except (BrokenPipeError, ConnectionResetError):
            # it ended before it read the job (the system takes memory back): not the fault of this file
            self.stop()
            self.start()
            try:
                answer = self._asked(frame, job)
            except (BrokenPipeError, ConnectionResetError) as error:
                raise self._crashed() from error
        if isinstance(answer, wire.Failed):
            raise wire.ParseFailedError(answer.reason, answer.detail)
        return answer

    def _asked(self, frame: bytes, job: wire.ParseJob) -> Cut | wire.Failed:
        connection = self._connection
        assert connection is not None
        try:
            received = self._exchange(connection, frame, wire.answer_limit_bytes(job.source))
            answer, is_last = wire.decode_answer(received)
        except BlockingIOError as error:
            self.stop()
            raise self._too_slow() from error
        except (BrokenPipeError, ConnectionResetError):
            raise
        except (EOFError, OSError) as error:
            raise self._crashed() from error
        except ValueError as error:
            self.stop()
            raise wire.ParseFailedError("crashed", str(error)) from error
        if is_last or answer is None:
            self.stop()
        return answer or wire.Failed("crashed", "the parser answered what was not asked")

    def _exchange(self, connection: Connection, frame: bytes, limit_bytes: int) -> bytes:
        """Raises BlockingIOError when the child is too slow in reading, in parsing or in answering."""
        connection.send_bytes(frame)
        if not connection.poll(self._setup.limits.parse_seconds):
            raise BlockingIOError("no answer")
        return connection.recv_bytes(limit_bytes)

    def _too_slow(self) -> wire.ParseFailedError:
        return wire.ParseFailedError("timeout", f"not parsed within {self._setup.limits.parse_seconds:g} s")

    def _crashed(self) -> wire.ParseFailedError:
        """Call when the pipe broke: the process has ended or is about to."""
        assert self._process is not None
        try:
            code = self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            code = None
        ended = self.stop()
        if code == -signal.SIGXCPU:
            return self._too_slow()
        return wire.ParseFailedError("crashed", f"the parser ended its process ({ended})")

    def kill(self) -> None:
        """Ends the child at once; from any thread. Whoever waits for it gets a crash."""
        with self._lock:
            process = self._process
        if process is not None and process.poll() is None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return

    def stop(self) -> str:
        """Ends the child and says how it ended, for people. Idempotent."""
        with self._lock:
            process, connection = self._process, self._connection
            self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is None:
            return "not running"
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What a child needs of the daemon's environment (no tokens, no proxies), and what keeps it small: one
    thread, one arena of memory, no compiled files written."""
    kept = {name: environment[name] for name in _KEPT if name in environment}
    return {
        **kept,
        "MALLOC_ARENA_MAX": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "RAYON_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
