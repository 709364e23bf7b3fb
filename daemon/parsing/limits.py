"""What a parsing child may use, and how it is held to that.

What must stay true: called in the child alone, before it sees the first byte of a file. The limits hold a
parser that went wrong; they are no prison for code that was made to break out.
"""

from __future__ import annotations

import math
import os
import resource
import select
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MIB = 1 << 20

_REFUSED_EVENTS = frozenset(
    {
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.system",
        "pty.spawn",
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.sendmsg",
        "socket.sendto",
        "subprocess.Popen",
    }
)
"""Audit events of Python that mean another program or the network: a parser needs neither."""


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """`parse_memory_mb` counts from what the child takes when it is ready for its first file."""

    parse_seconds: float = 30.0
    parse_memory_mb: int = 512
    niceness: int = 10


def harden(limits: ParseLimits) -> None:
    """No files written, no core dumps, no network, no other programs, and behind the programs of the
    person."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    os.setpriority(os.PRIO_PROCESS, 0, max(os.getpriority(os.PRIO_PROCESS, 0), limits.niceness))
    sys.addaudithook(_refuse)


def _refuse(event: str, _arguments: tuple[Any, ...]) -> None:
    if event in _REFUSED_EVENTS:
        raise PermissionError(f"a parser may not use {event}")


def address_space_bytes() -> int:
    """What this process has mapped; 0 where the system does not say (it is not Linux)."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 0


def cap_memory(limits: ParseLimits, base_bytes: int) -> None:
    """No more than parse_memory_mb above `base_bytes`; asking for more raises MemoryError. Only Linux holds
    to it."""
    if base_bytes:
        most = base_bytes + limits.parse_memory_mb * _MIB
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def is_bloated(limits: ParseLimits, base_bytes: int) -> bool:
    """Whether what earlier files left behind takes so much of the limit that the next one would feel it."""
    return address_space_bytes() - base_bytes > limits.parse_memory_mb * _MIB // 4


def cap_processor_time(limits: ParseLimits) -> None:
    """From now on parse_seconds of processor time, rounded up; then the system ends the process (SIGXCPU).
    It is for a child whose parent is gone and whose parser loops: the parent counts real time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = math.ceil(used.ru_utime + used.ru_stime + limits.parse_seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def end_with_parent(descriptor: int) -> None:
    """Ends this process, also in the middle of a file, when the other end of `descriptor` is closed."""
    poll = select.poll()
    poll.register(descriptor, 0)  # a hang-up is always reported

    def wait() -> None:
        poll.poll()
        os._exit(0)

    threading.Thread(target=wait, name="ragd-parent", daemon=True).start()
