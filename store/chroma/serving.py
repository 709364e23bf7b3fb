"""The loop of the Chroma child: one request, one answer, until the daemon is gone.

What must stay true: a request that has begun is finished, and its effect closed properly, whatever became of the
daemon meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Protocol

from ragd.store.chroma.wire import Answer, Request, decode_request, encode

PARENT_POLL_S = 5.0
LOG_LIMIT_BYTES = 64 * 1024


class Opened(Protocol):
    """A folder that is open and answers requests."""

    def answer(self, request: Request) -> Answer: ...

    def close(self) -> None: ...


def serve(
    connection: Connection,
    parent: int,
    open_folder: Callable[[], Opened],
    problem_of: Callable[[Exception], str],
) -> None:
    """Open the folder at the first request, answer until the daemon (process id `parent`) is gone, close."""
    opened: Opened | None = None
    while (message := next_message(connection, parent)) is not None:
        request = decode_request(message)
        try:
            opened = opened or open_folder()
            done = opened.answer(request)
        except Exception as error:  # noqa: BLE001 - it goes to the daemon, which raises it; a panic ends the process
            done = Answer(0, problem_of(error), f"{type(error).__name__}: {error}"[:2000])
        done.number = request.number
        try:
            connection.send_bytes(encode(done))
        except OSError:
            break
        _bound_log()
    if opened is not None:
        opened.close()


def next_message(connection: Connection, parent: int, poll_s: float = PARENT_POLL_S) -> bytes | None:
    """The next request; None once the daemon is gone. A process that inherited the daemon's end of the socket
    could hide that, so the parent is looked at too."""
    try:
        while not connection.poll(poll_s):
            if os.getppid() != parent:
                return None
        return connection.recv_bytes()
    except (EOFError, OSError):
        return None


def _bound_log() -> None:
    """Standard error is a file the daemon reads when this process dies; it is opened for appending."""
    if os.fstat(2).st_size > LOG_LIMIT_BYTES:
        os.ftruncate(2, 0)
