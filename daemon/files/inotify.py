"""inotify(7) through watchdog's reader thread: with `inotify_tree.py` the only door to watchdog on Linux.

What must stay true: nothing that goes wrong with one event ends the thread; a watch that is refused raises.

watchdog's own emitter is not used. It asks for openings as well, answers an overflow of the kernel's queue by
setting up every watch again (which above some thousand folders fills the queue again, for ever), keeps the
watches of folders that were moved away, cannot leave out folders, and hides that it could not add a watch.
What is used are its reader (descriptor, parsing, a thread that can be woken) and its callback protocol.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Protocol

from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyEvent,
    InotifyFD,
    Mask,
    Watch,
    WatchCallback,
    WatchDescriptor,
)

_WAKE_MS = 1000


class Listener(WatchCallback, Protocol):
    """A tree of watches, as the reader sees it."""

    key: CallbackId

    def settle(self) -> None:
        """Called after each batch of events, and every second."""

    def lose_events(self, reason: str) -> None:
        """Events were lost."""


class Reader(InotifyFD):
    """The reader's thread: gives events to the trees, then lets them settle."""

    def __init__(self) -> None:
        super().__init__()
        self.trees: list[Listener] = []
        self.failure = ""

    def run(self) -> None:
        while self.should_keep_running():
            try:
                events = self.read_events()
            except OSError as error:
                self.failure = f"watching ended: {error}"
                for tree in list(self.trees):
                    tree.lose_events(self.failure)
                return
            for event in events:
                self._guarded(self.handle_event, event)
            for tree in list(self.trees):
                self._guarded(tree.settle)

    def _guarded(self, call: Callable[..., None], *arguments: InotifyEvent) -> None:
        """Whatever goes wrong with one event costs a walk, not the thread."""
        try:
            call(*arguments)
        except Exception as error:  # noqa: BLE001 - an escaped one would end all watching; each tree walks and says so
            for tree in list(self.trees):
                tree.lose_events(f"an event could not be handled: {error!r}")

    def stop(self) -> None:
        """Idempotent; returns when the thread has ended."""
        self.trees.clear()
        super().stop()
        if threading.current_thread() is not self:
            self.join(timeout=5)

    def _check_inotify_fd(self) -> bool:
        """Waits at most a second, so that trees settle also when nothing happens."""
        if self._poller is None:
            return super()._check_inotify_fd()
        return any(descriptor == self._inotify_fd for descriptor, _ in self._poller.poll(_WAKE_MS))

    def _get_or_create_watch(self, path: bytes, mask: Mask) -> Watch:
        watch = super()._get_or_create_watch(path, mask)
        if watch.wd == -1:  # the base class lets a refused permission pass, as a watch numbered -1
            self._watch_for_wd.pop(WatchDescriptor(-1), None)
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return watch

    def watch(self, path: bytes, mask: Mask, tree: Listener) -> WatchDescriptor:
        """Add a watch, or find the one that the folder has already."""
        with self._lock:
            if self._closed:
                raise OSError(errno.EBADF, "watching has ended")
            watch = self._get_or_create_watch(path, mask)
            watch.callbacks[tree.key] = tree
            return watch.wd
