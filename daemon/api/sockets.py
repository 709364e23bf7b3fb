"""The unix socket of the daemon: taking it, reaching it.

What must stay true: it is 0600 from the moment it exists, and one that still answers is never replaced. This
module loads no server: `ragd status` needs it too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from ragd.daemon.errors import AddressInUseError, UsageError

_BACKLOG = 128
_PATH_LIMIT_BYTES = 100
"""A socket's path must be shorter than about 104 bytes (unix(7): 108 on Linux, less elsewhere)."""


def bind_unix(path: Path) -> socket.socket:
    """A listening socket at `path`, 0600. A stale file is replaced, one that answers never.

    Raises AddressInUseError or UsageError.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _clear_stale(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    except OSError as error:
        raise UsageError(f"[server] socket: {path} cannot be used ({error.strerror})") from error
    try:
        if sys.platform == "linux":
            os.fchmod(listener.fileno(), 0o600)  # the mode the file is made with, so it is never open to others
        with socket_address(path) as address:
            listener.bind(address)
        path.chmod(0o600)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise AddressInUseError(f"the socket {path} ([server] socket) is in use") from error
        raise UsageError(f"[server] socket: {path} cannot be used ({error.strerror or error})") from error
    listener.setblocking(False)
    return listener


def answers(path: Path) -> bool:
    """True when somebody listens on the unix socket at `path`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2.0)
        try:
            with socket_address(path) as address:
                probe.connect(address)
        except TimeoutError:
            return True  # its queue is full: somebody is there
        except OSError as error:
            return error.errno == errno.EAGAIN
    return True


@contextlib.contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """An address for the socket at `path` that is short enough, for as long as this is open."""
    if len(os.fsencode(path)) <= _PATH_LIMIT_BYTES or sys.platform != "linux":
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _clear_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise UsageError(f"[server] socket: {path} is not a socket and is not replaced; remove it or name another")
    if answers(path):
        raise AddressInUseError(f"the socket {path} ([server] socket) is in use: another daemon answers there")
    path.unlink(missing_ok=True)
