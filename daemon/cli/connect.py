"""Whom a command asks: the daemon that runs for this state, or, where the command can work alone, an engine
here.

What must stay true: never two engines on one state; a daemon that is there is always the one that is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ragd.daemon.errors import NoDaemonError, StateLockedError

if TYPE_CHECKING:
    from ragd.daemon.backend import Backend
    from ragd.daemon.config import Config


def find_running(config: Config) -> Backend | None:
    """The daemon, or None. The client is loaded only where there is a socket to try."""
    if not config.socket_path.exists():
        return None
    from ragd.daemon.api.client import find_daemon

    return find_daemon(config.socket_path)


def running(config: Config) -> Backend:
    """The daemon. Raises NoDaemonError."""
    found = find_running(config)
    if found is None:
        raise NoDaemonError(f"No daemon is running for {config.state_dir}. `ragd run` starts one.")
    return found


def open_here(config: Config) -> Backend:
    """An engine in this process. Raises StateLockedError when another one holds the state."""
    from ragd.daemon.engine import Engine

    return Engine.open(config)


def running_or_here(config: Config) -> Backend:
    """The daemon, else an engine in this process. A daemon takes the lock before it answers: who finds the state
    held asks once more. Raises StateLockedError."""
    found = find_running(config)
    if found is not None:
        return found
    try:
        return open_here(config)
    except StateLockedError:
        found = find_running(config)
        if found is None:
            raise
        return found


@contextmanager
def backend(config: Config, *, needs_daemon: bool = False) -> Iterator[Backend]:
    """The backend for one command, closed after it. Raises NoDaemonError when it needs a daemon and none
    runs."""
    found = running(config) if needs_daemon else running_or_here(config)
    try:
        yield found
    finally:
        found.close()
