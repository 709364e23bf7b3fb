"""Processes of this machine, for tests: waiting, looking, and killing exactly the one that is meant.

What must stay true: a signal goes to a process that is held by a descriptor or is our own child, never to a number
that may have become another process's.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

_Found = TypeVar("_Found")
POLL_S = 0.02
_CHILD = b"ragd.store.chroma.child"


def wait_for(what: str, probe: Callable[[], _Found], seconds: float = 60.0, poll_s: float = POLL_S) -> _Found:
    """The first true answer of `probe`. AssertionError with `what` and the last answer after `seconds`."""
    give_up_at = time.monotonic() + seconds
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() >= give_up_at:
            raise AssertionError(f"not within {seconds:g} s: {what}; last answer: {found!r}")
        time.sleep(poll_s)


def live_pids() -> list[int]:
    """Every process id on this machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def proc_file(pid: int, name: str) -> bytes:
    """A file of /proc/PID; empty when the process is gone, a zombie, or another user's."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def is_alive(pid: int) -> bool:
    """Whether it still runs; a zombie does not."""
    return proc_file(pid, "stat").rpartition(b")")[2][1:2] not in (b"", b"Z", b"X")


class Held:
    """A process that is not our child, by a descriptor: its number may become another process's, this does not."""

    def __init__(self, pid: int, is_it: Callable[[int], bool]) -> None:
        """ProcessLookupError when `pid` is not, or no longer, the process that is meant."""
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)
        if not is_it(pid):
            self.let_go()
            raise ProcessLookupError(pid)

    def kill(self) -> None:
        """SIGKILL; nothing when it has ended."""
        try:
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        except ProcessLookupError:
            return

    @property
    def has_ended(self) -> bool:
        return bool(select.select([self._descriptor], [], [], 0)[0])

    def let_go(self) -> None:
        os.close(self._descriptor)


@contextmanager
def held(pids: Sequence[int], is_it: Callable[[int], bool]) -> Iterator[list[Held]]:
    """Those of the processes that are still there and still the ones that are meant."""
    found: list[Held] = []
    try:
        for pid in pids:
            try:
                found.append(Held(pid, is_it))
            except ProcessLookupError:
                continue
        yield found
    finally:
        for process in found:
            process.let_go()


def cpu_seconds(pid: int) -> float:
    """User and system time a process used so far; 0 when it is gone."""
    fields = proc_file(pid, "stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def is_chroma(command_line: bytes, folder: Path) -> bool:
    """Whether this is the command line of a Chroma process on `folder`. A zombie's is empty."""
    words = command_line.split(b"\0")
    return _CHILD in words and os.path.realpath(folder).encode() in words


class ChromaWatch:
    """Looks all the time how many Chroma processes live on a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stopping = threading.Event()
        self._known: dict[int, tuple[bytes, float]] = {}
        self.most_at_once = 0
        self.seen: set[int] = set()
        self.looks = 0
        self.moments: deque[list[int]] = deque(maxlen=5)
        """The last looks that found more than one."""
        self._thread = threading.Thread(target=self._run, name="chroma-watch")

    def __enter__(self) -> ChromaWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(POLL_S):
            found = [pid for pid in live_pids() if self._is_chroma(pid)]
            # what was found first may have ended before the last was looked at
            found = found if len(found) < 2 else [pid for pid in found if is_alive(pid)]
            self.looks += 1
            self.seen.update(found)
            self.most_at_once = max(self.most_at_once, len(found))
            if len(found) > 1:
                self.moments.append(found)

    def _is_chroma(self, pid: int) -> bool:
        """A process is looked at anew in its first seconds, when it may not have loaded its program yet, and later
        only while it is one of ours."""
        now = time.monotonic()
        line, first = self._known.get(pid, (b"", now))
        if now - first < 2.0 or is_chroma(line, self._folder):
            line = proc_file(pid, "cmdline")
            self._known[pid] = (line, first)
        return is_chroma(line, self._folder)
