"""Reading one file's bytes, safely.

What must stay true: what is opened is a regular file inside its root (or, through a followed link, inside
another root) at the moment it is opened, whatever anybody does to the folders meanwhile; the bytes that are
returned are one state of the file, not a mix of two.

Each folder is opened from the one above it with O_NOFOLLOW, so a folder that was swapped for a symbolic link
is noticed. A pipe does not block (O_NONBLOCK), and a device or a file in the cloud is not opened at all.
"""

from __future__ import annotations

import errno
import os
import stat as stat_bits
from dataclasses import dataclass

from ragd.daemon.files import paths
from ragd.daemon.files.roots import RootRules
from ragd.daemon.files.walk import is_local, stat_of
from ragd.store.types import FileStat

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW | _CLOEXEC
_FILE_FLAGS = os.O_RDONLY | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | _CLOEXEC
_FILE_FLAGS |= getattr(os, "O_BINARY", 0)

_STEPWISE = os.open in os.supports_dir_fd and bool(_NOFOLLOW)

_MAY_PASS = frozenset(
    getattr(errno, name, -1)
    for name in (
        "EIO", "EAGAIN", "EBUSY", "EINTR", "ENOMEM", "EMFILE", "ENFILE", "ETIMEDOUT", "ESTALE",
        "ENOTCONN", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileBytes:
    """The whole file and the stat that belongs to these bytes."""

    data: bytes
    stat: FileStat


@dataclass(frozen=True, slots=True)
class NotRead:
    """Why there are no bytes.

    `code` is a reason code of the outer contract (not_regular, not_local, too_large, unstable, unreadable,
    outside_root), or `gone`: there is no such file any more, which is for the next walk to find.
    """

    code: str
    detail: str
    stat: FileStat | None = None
    may_pass: bool = False
    """The cause may pass without the file changing: try again after a pause."""


def read_file(root: RootRules, path: bytes, max_bytes: int, *, accept_growing: bool = False) -> FileBytes | NotRead:
    """Read a file of a root. Never raises OSError.

    `accept_growing`: a file that only grew while it was read (a log that is never quiet) is taken as it was
    when it was opened; its stat will not fit the next walk, so it is read again then.
    """
    try:
        return _read(root, path, max_bytes, accept_growing)
    except OSError as error:
        return _not_read(error)


def _read(root: RootRules, path: bytes, max_bytes: int, accept_growing: bool) -> FileBytes | NotRead:
    *folders, name = path.split(b"/")
    if not name or any(part in (b"", b".", b"..") for part in (*folders, name)) or b"\0" in path:
        return NotRead("outside_root", f"not a path in the root: {paths.show(path)}")
    if root.follow_symlinks:
        place = _resolved(root, path)
        if isinstance(place, NotRead):
            return place
        base, rest = place
        *folders, name = rest.split(b"/")
    else:
        base = root.path
    if not _STEPWISE:
        return _read_by_path(base, folders, name, max_bytes, accept_growing)
    folder = os.open(base, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _CLOEXEC)
    try:
        for part in folders:
            below = os.open(part, _FOLDER_FLAGS, dir_fd=folder)
            os.close(folder)
            folder = below
        return _read_in(folder, name, max_bytes, accept_growing)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and _has_link(base, folders):
            return NotRead("outside_root", "a folder above it is a symbolic link")
        raise
    finally:
        os.close(folder)


def _read_in(folder: int | None, name: bytes, max_bytes: int, accept_growing: bool) -> FileBytes | NotRead:
    """Read `name`, relative to an open folder (None: `name` is a whole path)."""
    before = os.stat(name, dir_fd=folder, follow_symlinks=False)
    refused = _refuse(before, max_bytes)
    if refused is not None:
        return refused
    descriptor = os.open(name, _FILE_FLAGS, dir_fd=folder)
    try:
        opened = os.fstat(descriptor)
        refused = _refuse(opened, max_bytes)
        if refused is not None:
            return refused
        if (opened.st_ino, opened.st_dev) != (before.st_ino, before.st_dev):
            return NotRead("unstable", "replaced while it was opened", stat_of(opened), may_pass=True)
        data = _read_all(descriptor, opened.st_size)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    grew = accept_growing and after.st_size > opened.st_size and len(data) > opened.st_size
    if grew:
        return FileBytes(data[: opened.st_size], stat_of(opened))
    if stat_of(after) != stat_of(opened) or len(data) != opened.st_size:
        return NotRead("unstable", "it changed while it was read", stat_of(after), may_pass=True)
    return FileBytes(data, stat_of(opened))


def _read_all(descriptor: int, size: int) -> bytes:
    """Up to `size` bytes and one more, which shows that the file grew."""
    parts: list[bytes] = []
    left = size + 1
    while left > 0:
        part = os.read(descriptor, min(left, 1 << 20))
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _refuse(status: os.stat_result, max_bytes: int) -> NotRead | None:
    if not stat_bits.S_ISREG(status.st_mode):
        return NotRead("not_regular", kind_of(status.st_mode), stat_of(status))
    if not is_local(status):
        return NotRead("not_local", f"{status.st_size} bytes, in the cloud", stat_of(status))
    if status.st_size > max_bytes:
        return NotRead("too_large", f"{status.st_size} bytes", stat_of(status))
    return None


def kind_of(mode: int) -> str:
    """What stands at a path, for people."""
    kinds = (
        (stat_bits.S_ISREG, "file"),
        (stat_bits.S_ISDIR, "folder"),
        (stat_bits.S_ISLNK, "symbolic link"),
        (stat_bits.S_ISFIFO, "pipe"),
        (stat_bits.S_ISSOCK, "socket"),
    )
    return next((word for test, word in kinds if test(mode)), "device")


def _resolved(root: RootRules, path: bytes) -> tuple[bytes, bytes] | NotRead:
    """Where a path leads with links followed: (folder of a root, the path in it)."""
    real = os.path.realpath(paths.join(root.path, path))
    homes = [home for home in (os.path.realpath(root.path), *root.link_targets) if paths.relative(real, home)]
    if not homes:
        return NotRead("outside_root", "a symbolic link leads out of the roots")
    home = max(homes, key=len)
    return home, paths.relative(real, home) or b""


def _has_link(base: bytes, folders: list[bytes]) -> bool:
    place = base
    for part in folders:
        place = paths.join(place, part)
        if os.path.islink(place):
            return True
    return False


def _read_by_path(
    base: bytes, folders: list[bytes], name: bytes, max_bytes: int, accept_growing: bool
) -> FileBytes | NotRead:
    """Where folders can't be opened (Windows): the real path must be the expected one."""
    place = paths.join(paths.join(os.path.realpath(base), b"/".join(folders)), name)
    folder = os.path.dirname(place)
    if os.path.normcase(os.path.realpath(folder)) != os.path.normcase(os.path.normpath(folder)):
        return NotRead("outside_root", "a folder above it is a symbolic link")
    return _read_in(None, place, max_bytes, accept_growing)


def _not_read(error: OSError) -> NotRead:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotRead("gone", error.strerror or "")
    if error.errno == errno.ELOOP:
        return NotRead("not_regular", "symbolic link")
    return NotRead("unreadable", error.strerror or str(error), may_pass=error.errno in _MAY_PASS)
