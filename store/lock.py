"""The lock on the state folder: a flock on a file that is never removed.

What must stay true: the lock is held by an open file description, never by a number written in a file. It is
free exactly when no process holds that description any more, so a killed daemon leaves nothing stale, a
recycled process id means nothing (FAULTS F12), and a daemon that starts while the Chroma child of a killed
one still finishes its write waits for it: the child inherits the descriptor.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from ragd.store.errors import LockedError, StoreError

LOCK_NAME = "lock"
_POLL_S = 0.05


class StateLock:
    """Held by one process and its Chroma child. Not for threads: one process makes one of these.

    `release` closes the descriptor and never unlocks: an explicit unlock would take the lock from the child
    too.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder = state_dir
        self._clock = clock
        self._sleep = sleep
        self._descriptor: int | None = None

    @property
    def path(self) -> Path:
        return self._folder / LOCK_NAME

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def fileno(self) -> int:
        """The descriptor, to be given to the Chroma child and to no other process. Raises StoreError if not
        held."""
        if self._descriptor is None:
            raise StoreError(f"the lock {self.path} is not held")
        return self._descriptor

    def acquire(self, wait_s: float = 0.0) -> None:
        """Take the lock, trying for `wait_s` seconds. Idempotent.

        Raises LockedError, which names the holder, when it is taken; StoreError when the folder cannot be
        used.
        """
        if self._descriptor is not None:
            return
        descriptor = _open_lock_file(self._folder, self.path)
        try:
            self._flock(descriptor, wait_s)
            _write_holder(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Idempotent. The lock is free once a Chroma child that inherited it has ended too."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __enter__(self) -> StateLock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _flock(self, descriptor: int, wait_s: float) -> None:
        give_up_at = self._clock() + wait_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if self._clock() >= give_up_at:
                    raise LockedError(_who_holds(descriptor, self._folder)) from None
            except OSError as error:
                raise StoreError(f"{self.path}: this file system takes no locks ({error.strerror})") from error
            else:
                return
            self._sleep(_POLL_S)


def _open_lock_file(folder: Path, path: Path) -> int:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
        # O_NOFOLLOW: a link put here by somebody else must not make us write elsewhere.
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"the state folder {folder} cannot be used: {error.strerror}: {error.filename}") from error


def _write_holder(descriptor: int) -> None:
    """Only information for a person; a full disk must not keep the daemon from starting."""
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def _who_holds(descriptor: int, folder: Path) -> str:
    written = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
    who = f"the process that wrote {written} into its lock file" if written else "another process"
    return (
        f"{folder} is in use by {who} (or by its index process, which ends by itself after its last write). "
        "Use the running daemon, or stop it first"
    )
