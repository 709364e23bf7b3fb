"""Walking: what is on disk, inside one root, below some places.

What must stay true: a place whose folder could not be listed is reported in `unread`, so its absence is never
taken for a deletion; every file that is yielded was stat'ed in this walk; the order is that of the path's
bytes.

The walk goes down from each place with a stack of listed folders. In a folder it looks at the entries in the
order of their bytes, a folder counting as its name + "/": so the paths come out in the very order in which
the catalog sorts them, and the plan can compare the two lists without holding either. A folder is left out as
a whole when a rule says so. Symbolic links are not followed, unless the root asks for it; then a link is
followed only when its target lies in a configured root other than this one, and links below it are not
followed again: so no loop, and no file of this root under a second name. A symbolic link, socket, pipe or
device is no file and is counted in `not_regular`. Nothing is opened here except ignore files; reading checks
everything again (`read.py`).
"""

from __future__ import annotations

import errno
import os
import stat as stat_bits
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

from ragd.daemon.files import builtin_rules, paths
from ragd.daemon.files.ignore import Decision, IgnoreRules, Level
from ragd.daemon.files.roots import RootRules
from ragd.store.types import FileStat

DATALESS_FLAG = 0x40000000
"""SF_DATALESS of macOS: the bytes are in the cloud, and opening the file would fetch them."""
RECALL_ATTRIBUTES = 0x1000 | 0x40000 | 0x400000
"""Windows: OFFLINE, RECALL_ON_OPEN, RECALL_ON_DATA_ACCESS."""

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR})
_SPELLING_VARIES = sys.platform in ("darwin", "win32")

_CAN_BE_AWAY = hasattr(os.stat_result, "st_flags") or hasattr(os.stat_result, "st_file_attributes")

Scandir = Callable[[bytes], AbstractContextManager[Iterator[os.DirEntry[bytes]]]]


class Seen(NamedTuple):
    """One regular file. `local` is False when its bytes are not on this machine."""

    path: bytes
    stat: FileStat
    local: bool = True


@dataclass(slots=True)
class Walk:
    """One pass over some places of a root; iterate it once, then ask what it found.

    `places` are paths in the root, of files or of folders with all that is below; (b"",) is the whole root. The
    order of the paths holds within each place.
    """

    rules: IgnoreRules
    places: tuple[bytes, ...] = (b"",)
    scandir: Scandir = os.scandir
    seen: int = 0
    """Files stat'ed and yielded."""
    ignored: int = 0
    """Files and folders left out by a rule (what is below a folder is not counted)."""
    not_regular: int = 0
    folders: list[bytes] = field(default_factory=list)
    """Folders that were listed: what the watch set is checked against."""
    unread: dict[bytes, str] = field(default_factory=dict)
    """Places that could not be looked at, with the error: nothing below them is known."""

    def __iter__(self) -> Iterator[Seen]:
        for place in paths.outermost(self.places):
            yield from self._below(place)

    def covers(self, path: bytes) -> bool:
        """Whether this walk would have yielded the file if it were there: it lies in a place that was walked,
        and no folder above it was unreadable. Ask after the walk."""
        if not any(paths.is_under(path, place) for place in self.places):
            return False
        if not self.unread:
            return True
        return path not in self.unread and not any(folder in self.unread for folder in paths.ancestors(path))

    def _below(self, place: bytes) -> Iterator[Seen]:
        level = self.rules.top()
        if not place:
            yield from self._folders(level)
            return
        reached = self._reach(level, place)
        if reached is None:
            return
        level, name, status, linked = reached
        if stat_bits.S_ISDIR(status.st_mode):
            entered = level.enter(name)
            if isinstance(entered, Decision):
                self.ignored += 1
            else:
                yield from self._folders(entered, linked=linked)
        elif level.decide(name, is_folder=False) is not None:
            self.ignored += 1
        elif stat_bits.S_ISREG(status.st_mode):
            self.seen += 1
            yield Seen(paths.join(level.path, name), stat_of(status), is_local(status))
        else:
            self.not_regular += 1

    def _reach(self, level: Level, place: bytes) -> tuple[Level, bytes, os.stat_result, bool] | None:
        """Go down to a place: the level it lies in, its name, its stat, whether a link was followed on the
        way. None when there is nothing to look at."""
        linked = False
        *above, name = self._spelled(place).split(b"/")
        for part in above:
            found = self._look(level, part, place, linked=linked)
            if found is None:
                return None
            status, linked = found
            entered = level.enter(part) if stat_bits.S_ISDIR(status.st_mode) else None
            if not isinstance(entered, Level):
                self.ignored += entered is not None
                return None
            level = entered
        found = self._look(level, name, place, linked=linked)
        return None if found is None else (level, name, *found)

    def _look(self, level: Level, name: bytes, place: bytes, *, linked: bool) -> tuple[os.stat_result, bool] | None:
        if level.load() is not None:
            self.ignored += 1
            return None
        try:
            status = os.lstat(level.folder + b"/" + name)
        except OSError as error:
            self._note(place, error)
            return None
        if not stat_bits.S_ISLNK(status.st_mode):
            return status, linked
        target = None if linked else link_target(self.rules.root, level.folder + b"/" + name)
        if target is None:
            self.not_regular += 1
            return None
        return target, True

    def _spelled(self, place: bytes) -> bytes:
        """The place as it is spelled on disk, where file systems take several spellings for the same name."""
        if not _SPELLING_VARIES:
            return place
        spelled = b""
        for part in place.split(b"/"):
            try:
                names = os.listdir(paths.join(self.rules.root.path, spelled))
            except OSError:
                names = []
            spelled = paths.join(spelled, paths.same_name(part, names))
        return spelled

    def _folders(self, level: Level, *, linked: bool = False) -> Iterator[Seen]:
        """Every file below a folder, depth first: a stack of folders that were listed and are not
        finished."""
        stack = self._opened(level, linked=linked)
        while stack:
            level, linked, entries = stack[-1]
            prefix = level.path + b"/" if level.path else b""
            for _, is_folder, entry in entries:
                if is_folder:
                    entered = level.enter(entry.name)
                    if isinstance(entered, Level):
                        below = self._opened(entered, linked=linked or entry.is_symlink())
                        if below:
                            stack += below
                            break
                    else:
                        self.ignored += 1
                elif level.decide(entry.name, is_folder=False) is not None:
                    self.ignored += 1
                else:
                    path = prefix + entry.name
                    try:
                        status = entry.stat(follow_symlinks=entry.is_symlink())
                    except OSError as error:
                        self._note(path, error)
                    else:
                        self.seen += 1
                        yield Seen(path, stat_of(status), not _CAN_BE_AWAY or is_local(status))
            else:
                stack.pop()

    def _opened(self, level: Level, *, linked: bool) -> list[Frame]:
        """List a folder: one frame, or none when nothing in it is to be looked at."""
        entries: list[Listed] = []
        names: set[bytes] = set()
        try:
            with self.scandir(level.folder) as found:
                for entry in found:
                    names.add(entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        entries.append((entry.name + b"/", True, entry))
                    elif entry.is_file(follow_symlinks=False):
                        entries.append((entry.name, False, entry))
                    else:
                        self._special(entry, entries, linked=linked)
        except OSError as error:
            if error.errno not in _GONE or not level.path:
                self.unread[level.path] = error.strerror or str(error)
            return []
        if level.load(names) is not None:
            self.ignored += 1
            return []
        self.folders.append(level.path)
        entries.sort()
        return [(level, linked, iter(entries))]

    def _special(self, entry: os.DirEntry[bytes], entries: list[Listed], *, linked: bool) -> None:
        target = link_target(self.rules.root, entry.path) if entry.is_symlink() and not linked else None
        if target is None:
            self.not_regular += 1
        elif stat_bits.S_ISDIR(target.st_mode):
            entries.append((entry.name + b"/", True, entry))
        else:
            entries.append((entry.name, False, entry))

    def _note(self, place: bytes, error: OSError) -> None:
        """What is gone is not there; what cannot be looked at is unknown."""
        if error.errno not in _GONE:
            self.unread[place] = error.strerror or str(error)


Listed = tuple[bytes, bool, "os.DirEntry[bytes]"]
"""(key of its place in the order, whether it is a folder, the entry)"""

Frame = tuple[Level, bool, Iterator[Listed]]


def folders_below(rules: IgnoreRules, level: Level) -> list[Level] | None:
    """The levels of the folders in a folder that a walk would enter; loads `level`. None when the folder is
    ignored by what lies in it; [] also when it cannot be listed."""
    names: set[bytes] = set()
    folders: list[bytes] = []
    try:
        with os.scandir(level.folder) as entries:
            for entry in entries:
                names.add(entry.name)
                if entry.is_dir(follow_symlinks=False) or _leads_to_folder(rules.root, level, entry):
                    folders.append(entry.name)
    except OSError:
        return []
    if level.load(names) is not None:
        return None if level.path else []
    entered = (level.enter(name) for name in sorted(folders))
    return [below for below in entered if isinstance(below, Level)]


def _leads_to_folder(root: RootRules, level: Level, entry: os.DirEntry[bytes]) -> bool:
    if not root.follow_symlinks or not entry.is_symlink():
        return False
    places = (level.path, *paths.ancestors(level.path))
    if any(os.path.islink(paths.join(root.path, place)) for place in places if place):
        return False
    return link_target(root, entry.path) is not None and entry.is_dir()


def link_target(root: RootRules, link: bytes) -> os.stat_result | None:
    """What a symbolic link leads to, when it may be followed: a file or folder in another root, which the
    built-in list would not leave out there."""
    if not root.follow_symlinks:
        return None
    real = os.path.realpath(link)
    homes = [home for home in root.link_targets if paths.relative(real, home) is not None]
    if not homes or paths.relative(real, os.path.realpath(root.path)) is not None:
        return None
    try:
        status = os.stat(real)
    except OSError:
        return None
    is_folder = stat_bits.S_ISDIR(status.st_mode)
    if not is_folder and not stat_bits.S_ISREG(status.st_mode):
        return None
    *folders, last = (paths.relative(real, max(homes, key=len)) or b"").split(b"/")
    named = any(map(builtin_rules.folder_rule, [*folders, last] if is_folder else folders))
    return None if named or (not is_folder and builtin_rules.file_rule(last)) else status


def stat_of(status: os.stat_result) -> FileStat:
    return FileStat(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)


def is_local(status: os.stat_result) -> bool:
    """False for a file of a cloud folder whose bytes would be fetched by opening it."""
    flags = getattr(status, "st_flags", 0)
    attributes = getattr(status, "st_file_attributes", 0)
    return not (flags & DATALESS_FLAG or attributes & RECALL_ATTRIBUTES)
