"""Roots: the configured folders, which of them owns a file, and whether one can be believed right now.

What must stay true: a root that is missing, unreadable or an empty mount point is `unavailable`; nothing that
is absent from it counts as deleted (`check_root` is asked before and after a walk).
"""

from __future__ import annotations

import errno
import os
import stat as stat_bits
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragd.daemon.files import paths


@dataclass(frozen=True, slots=True)
class RootRules:
    """What decides which files of a root are indexed. Built from the configuration, completed by
    `arrange`."""

    name: str
    path: bytes
    """Absolute, as configured; it may be a symbolic link to a folder."""
    include: tuple[str, ...] = ()
    """Patterns in gitignore syntax, matched against the path in the root; none means everything."""
    exclude: tuple[str, ...] = ()
    """Patterns in gitignore syntax, matched against the path in the root."""
    follow_symlinks: bool = False
    gitignore: bool = True
    inner: tuple[bytes, ...] = ()
    """Paths in this root where another root begins: that one owns them."""
    kept_out: tuple[bytes, ...] = ()
    """Paths in this root that are never looked at: ragd's own state folder and log."""
    link_targets: tuple[bytes, ...] = ()
    """Real paths of all roots: a followed link leads into one of them, or is not followed."""


@dataclass(frozen=True, slots=True)
class RootIdentity:
    """Which folder stood at a root's path: kept with the catalog after a walk that was believed."""

    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class RootHealth:
    """`state` is ok or unavailable; `reason` is missing, not_a_directory, unreadable or empty_mount_point."""

    state: str
    reason: str = ""
    detail: str = ""
    identity: RootIdentity | None = None
    replaced: bool = False
    """Another folder than the known one stands there: what is absent from it is looked at with more doubt."""

    @property
    def ok(self) -> bool:
        return self.state == "ok"


def arrange(roots: Sequence[RootRules], kept_out: Iterable[bytes] = ()) -> tuple[RootRules, ...]:
    """The roots with what each must know of the others. `kept_out` are absolute paths of the daemon's own
    files."""
    real_paths = [os.path.realpath(root.path) for root in roots]
    own_files = {form for path in kept_out for form in (path, os.path.realpath(path))}
    arranged = []
    for root, real in zip(roots, real_paths, strict=True):
        others = {
            form
            for other, other_real in zip(roots, real_paths, strict=True)
            if other is not root
            for form in (other.path, other_real)
        }
        arranged.append(
            replace(
                root,
                inner=_below((root.path, real), others),
                kept_out=_below((root.path, real), own_files),
                link_targets=tuple(sorted(set(real_paths))),
            )
        )
    return tuple(arranged)


def _below(folders: Iterable[bytes], candidates: Iterable[bytes]) -> tuple[bytes, ...]:
    found = {paths.relative(path, folder) for folder in folders for path in candidates}
    return tuple(sorted(path for path in found if path))


def owner(path: bytes, roots: Sequence[RootRules]) -> tuple[RootRules, bytes] | None:
    """The innermost root an absolute path lies in, and the path in it; None outside all roots.

    A path through a symbolic link that leads to a root's folder is recognised too; the last component is
    never followed, for a link in a root is itself and not its target.
    """
    folder, name = os.path.split(path)
    resolved = os.path.join(os.path.realpath(folder), name)
    found: list[tuple[int, RootRules, bytes]] = []
    for root in roots:
        for base in (root.path, os.path.realpath(root.path)):
            for form in (path, resolved):
                below = paths.relative(form, base)
                if below is not None:
                    found.append((-len(below), root, below))
    if not found:
        return None
    _, root, below = max(found, key=lambda entry: entry[0])
    return root, below


def check_root(path: bytes, known: RootIdentity | None = None, *, has_files: bool = False) -> RootHealth:
    """Whether what a walk of this root does not find may be believed to be gone.

    `known` is the identity kept after the last believed walk, `has_files` whether the catalog knows files of
    it. An empty folder that is not the known one is what an unmounted disk leaves behind.
    """
    try:
        status = os.stat(path)
        if not stat_bits.S_ISDIR(status.st_mode):
            return RootHealth("unavailable", "not_a_directory", "a file stands where the folder was")
        with os.scandir(path) as entries:
            empty = next(entries, None) is None
    except OSError as error:
        return _unavailable(error)
    identity = RootIdentity(status.st_dev, status.st_ino)
    replaced = known is not None and known != identity
    if empty and has_files and (known is None or replaced):
        return RootHealth(
            "unavailable",
            "empty_mount_point",
            "the folder is empty and is not the one that was indexed",
            identity,
            replaced,
        )
    return RootHealth("ok", identity=identity, replaced=replaced)


def _unavailable(error: OSError) -> RootHealth:
    if error.errno == errno.ENOENT:
        return RootHealth("unavailable", "missing", "the folder does not exist (is a disk or share not mounted?)")
    if error.errno in (errno.ENOTDIR, errno.ELOOP):
        return RootHealth("unavailable", "not_a_directory", error.strerror or "")
    return RootHealth("unavailable", "unreadable", error.strerror or str(error))
