"""The inotify watches of one root.

What must stay true: every folder that is not ignored is watched or is named in `uncovered`; a lost event sets
off a walk; a folder that was moved away is not reported under its old path.

One operation does all the work: `_sync` makes the watches at and below a folder those that should be there.
It causes no events of its own, so it can be repeated after an overflow without filling the queue. Moves are
settled within one batch of events, without waiting: what is not paired there was a removal and an arrival,
which costs only some system calls more. Hints go out at once; the inbox debounces.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    Mask,
    WatchCallback,
    WatchDescriptor,
)

from ragd.daemon.files import paths
from ragd.daemon.files.hints import Hint, Post
from ragd.daemon.files.ignore import RULE_FILES, IgnoreRules, Level
from ragd.daemon.files.inotify import Reader
from ragd.daemon.files.walk import folders_below

_CHANGES = Mask(
    InotifyConstants.IN_CREATE
    | InotifyConstants.IN_MODIFY
    | InotifyConstants.IN_CLOSE_WRITE
    | InotifyConstants.IN_ATTRIB
    | InotifyConstants.IN_MOVE
    | InotifyConstants.IN_DELETE
    | InotifyConstants.IN_DELETE_SELF
)
"""Nothing about opening or reading: the daemon would wake itself up."""

_ARRIVED = InotifyConstants.IN_CREATE | InotifyConstants.IN_MOVED_TO
_LEFT = InotifyConstants.IN_DELETE | InotifyConstants.IN_MOVED_FROM
_FLAGS = InotifyConstants.IN_ONLYDIR | InotifyConstants.IN_EXCL_UNLINK

LIMIT_ERRORS = frozenset({errno.ENOSPC, errno.ENOMEM})
MAX_UNCOVERED = 1000
"""More folders without a watch than this, and the whole root is named instead."""

SYNC_PAUSE_S = 5.0
"""Between two comparisons after the queue ran over."""

RETRY_PAUSE_S = 60.0
"""Between two tries for folders without a watch."""


class WatchedTree(WatchCallback):
    """The watches of one root. Thread-safe."""

    def __init__(
        self,
        reader: Reader,
        rules: IgnoreRules,
        post: Post,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rules = rules
        self.key = CallbackId(id(self))
        self.uncovered: dict[bytes, str] = {}
        """Folders without a watch, nor below, and why."""
        self.gone = True
        """The root's folder is not there, or is another one."""
        self.rescan_reason = ""
        """Why the whole root was last asked to be walked."""
        self._reader = reader
        self._post = post
        self._clock = clock
        self._lock = threading.RLock()
        self._levels: dict[WatchDescriptor, Level] = {}
        self._watches: dict[bytes, WatchDescriptor] = {}
        self._identity: tuple[int, int] | None = None
        self._moving: dict[int, set[WatchDescriptor]] = {}
        self._changed_rules: set[bytes] = set()
        self._said: set[Hint] = set()
        self._must_sync = False
        self._synced_at = self._retried_at = float("-inf")
        self._started = False

    # --- from outside ---

    def stop(self) -> None:
        with self._lock:
            self._drop(set(self._levels))
            self.uncovered.clear()
            self._identity = None
            self.gone = True

    @property
    def watch_count(self) -> int:
        return len(self._watches)

    def places_uncovered(self) -> dict[bytes, str]:
        with self._lock:
            return dict(self.uncovered)

    def check_root(self) -> bool:
        """Whether the root's folder is there and watched: cheap, to be called every few seconds, because the
        kernel tells nothing of a folder above it that is renamed. A root that came back is watched again and
        walked."""
        try:
            status = os.stat(self.rules.root.path)
        except OSError:
            status = None
        identity = None if status is None else (status.st_dev, status.st_ino)
        with self._lock:
            if identity is not None and identity == self._identity and not self.gone:
                self._retry_uncovered()
                return True
            was_there = self._identity is not None
            self.stop()
            if identity is None:
                if was_there:
                    self._whole("root gone")
                return False
            self.gone = False
            self._sync(b"")
            if self.gone:
                return False
            self._identity = identity
            if self._started:
                self._whole("root came back")
            self._started = True
            return True

    def compare(self, folders: list[bytes]) -> int:
        """Check the watch set against the folders that a whole walk listed. What lacked a watch gets one and
        is looked at again. Returns how many got one."""
        with self._lock:
            mended = 0
            for path in paths.outermost(set(folders) - set(self._watches)):
                if not self._is_uncovered(path) and self._sync(path):
                    mended += 1
                    self._say(Hint(self.rules.root.name, path, folder=True))
            return mended

    def lose_events(self, reason: str) -> None:
        """Events were lost: walk the root, and look soon which folders lack a watch."""
        with self._lock:
            self._must_sync = True
            self._whole(reason)

    # --- from the reader's thread ---

    def on_event(self, event: InotifyEvent) -> None:
        with self._lock:
            level = self._levels.get(event.wd)
            if level is None:
                return
            if not level.path and event.mask & (
                InotifyConstants.IN_DELETE_SELF | InotifyConstants.IN_MOVE_SELF | InotifyConstants.IN_UNMOUNT
            ):
                self.gone = True
                self._whole("root gone")
            elif event.name:
                self._on_entry(level, event)

    def _on_entry(self, level: Level, event: InotifyEvent) -> None:
        is_folder = bool(event.mask & InotifyConstants.IN_ISDIR)
        name = event.name
        if name in RULE_FILES and event.mask & (_ARRIVED | _LEFT | InotifyConstants.IN_CLOSE_WRITE):
            self._changed_rules.add(level.path)
        path = paths.join(level.path, name)
        left = bool(event.mask & _LEFT)
        if is_folder and left:
            # Whatever the rules say of it today, its watches go: they may be older than the rules.
            self._on_folder_left(path, event)
        if level.decide(name, is_folder=is_folder) is not None:
            return
        is_link = self.rules.root.follow_symlinks and os.path.islink(level.folder + b"/" + name)
        if (is_folder or is_link) and not left:
            if event.is_attrib and path in self._watches:
                return
            self._sync(path)
            if event.is_moved_to:
                self._drop_stale(self._moving.pop(event.cookie, set()))
        self._say(Hint(self.rules.root.name, path, deleted=left, folder=is_folder))

    def _on_folder_left(self, path: bytes, event: InotifyEvent) -> None:
        below = {wd for place, wd in self._watches.items() if paths.is_under(place, path)}
        self._forget_uncovered(path)
        if event.is_moved_from and below:
            for wd in below:
                del self._watches[self._levels[wd].path]
            self._moving[event.cookie] = below
        else:
            self._drop(below)

    def _drop_stale(self, moved: set[WatchDescriptor]) -> None:
        """Of watches whose folders moved, remove those that were not found again."""
        levels = ((wd, self._levels.get(wd)) for wd in moved)
        self._drop({wd for wd, level in levels if level is not None and self._watches.get(level.path) != wd})

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        """The kernel removed a watch: its folder is gone."""
        with self._lock:
            level = self._levels.pop(wd, None)
            if level is None:
                return
            if self._watches.get(level.path) == wd:
                del self._watches[level.path]
                if not level.path:
                    self.gone = True

    def on_queue_overflow(self) -> None:
        """Keep the watches, for they are still right but for a few; walk, and compare when it is calmer."""
        self.lose_events("overflow")

    def settle(self) -> None:
        """After each batch of events, and every second."""
        with self._lock:
            self._said.clear()
            for moved in self._moving.values():
                self._drop_stale(moved)
            self._moving.clear()
            changed, self._changed_rules = self._changed_rules, set()
            for path in paths.outermost(changed):
                self._sync(path)
                self._say(Hint(self.rules.root.name, path, folder=True))
            if self._must_sync and not self.gone and self._clock() - self._synced_at >= SYNC_PAUSE_S:
                self._must_sync = False
                before = set(self._watches)
                self._sync(b"")
                self._synced_at = self._clock()
                for path in paths.outermost(set(self._watches) - before):
                    self._say(Hint(self.rules.root.name, path, folder=True))

    # --- with the lock held ---

    def _say(self, hint: Hint) -> None:
        if hint not in self._said:
            self._said.add(hint)
            self._post(hint)

    def _whole(self, reason: str) -> None:
        self.rescan_reason = reason
        self._post(Hint(self.rules.root.name, b"", folder=True))

    def _sync(self, path: bytes) -> bool:
        """Make the watches at and below a folder those that should be there. Whether the folder itself is
        watched.

        Each folder is watched first and listed then: what arrives in between is seen by one of the two.
        Shallow folders come first, for the kernel may not give enough watches for all.
        """
        stale = {wd for place, wd in self._watches.items() if paths.is_under(place, path)}
        self._forget_uncovered(path)
        start = self._level(path)
        waiting = deque([start] if start is not None else [])
        while waiting:
            level = waiting.popleft()
            wd = self._add(level)
            if wd is None:
                continue
            below = folders_below(self.rules, level)
            if below is None:
                stale.add(wd)
                continue
            stale.discard(wd)
            waiting.extend(below)
        self._drop({wd for wd in stale if wd in self._levels})
        return path in self._watches

    def _level(self, path: bytes) -> Level | None:
        """The level of a folder, from the watched one above it; None when it is ignored."""
        if not path:
            return self.rules.top()
        above = self._levels.get(self._watches.get(paths.parent(path), WatchDescriptor(-1)))
        entered = above.enter(paths.name_of(path)) if above is not None else None
        return entered if isinstance(entered, Level) else None

    def _add(self, level: Level) -> WatchDescriptor | None:
        """Watch one folder, or note why it is not."""
        follows = not level.path or self.rules.root.follow_symlinks
        mask = _CHANGES | _FLAGS | (0 if follows else InotifyConstants.IN_DONT_FOLLOW)
        mask |= 0 if level.path else InotifyConstants.IN_MOVE_SELF
        try:
            wd = self._reader.watch(level.folder, Mask(mask), self)
        except OSError as error:
            if error.errno in LIMIT_ERRORS:
                self._note_uncovered(level.path, error.strerror or str(error))
            elif not level.path:
                self.gone = True
            return None
        known = self._levels.get(wd)
        if known is not None and known.path != level.path and self._watches.get(known.path) == wd:
            if _same_folder(known.folder, level.folder):
                self._note_uncovered(level.path, f"the same folder as {paths.show(known.folder)}")
                return None
            del self._watches[known.path]
        self._levels[wd] = level
        self._watches[level.path] = wd
        return wd

    def _drop(self, wds: set[WatchDescriptor]) -> None:
        """Remove watches, in the kernel too."""
        with suppress(OSError):
            self._reader.remove_callbacks([(wd, self.key) for wd in wds])
        for wd in wds:
            level = self._levels.pop(wd, None)
            if level is not None and self._watches.get(level.path) == wd:
                del self._watches[level.path]

    def _note_uncovered(self, path: bytes, why: str) -> None:
        self.uncovered[path] = why
        if len(self.uncovered) > MAX_UNCOVERED:
            self.uncovered = {b"": why}

    def _forget_uncovered(self, path: bytes) -> None:
        for place in [place for place in self.uncovered if paths.is_under(place, path)]:
            del self.uncovered[place]

    def _is_uncovered(self, path: bytes) -> bool:
        return any(paths.is_under(path, place) for place in self.uncovered)

    def _retry_uncovered(self) -> None:
        """The limit may have been raised, or other watches been given back: try one folder, then the rest."""
        if not self.uncovered or self._clock() - self._retried_at < RETRY_PAUSE_S:
            return
        self._retried_at = self._clock()
        for place in sorted(self.uncovered):
            if not self._sync(place):
                return
            self._say(Hint(self.rules.root.name, place, folder=True))


class InotifyGroup(Reader):
    """All trees of this process share one inotify instance."""

    def tree(self, rules: IgnoreRules, post: Post) -> WatchedTree:
        tree = WatchedTree(self, rules, post)
        self.trees.append(tree)
        return tree


def _same_folder(one: bytes, other: bytes) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
