"""Watching where there is no inotify: watchdog's own observer (FSEvents, kqueue, ReadDirectoryChangesW).

What must stay true: the handler puts hints and nothing else, and no exception leaves it: one would end
watchdog's thread. These observers cannot leave out folders, so ignored ones are dropped here, event by event.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from ragd.daemon.files import paths
from ragd.daemon.files.hints import Hint, Post
from ragd.daemon.files.ignore import RULE_FILES, Explainer, IgnoreRules

EVENTS: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileModifiedEvent,
    FileClosedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
]
"""Without FileCreated most new files in new folders are missed; with openings the daemon would wake
itself."""


class ObservedTree(FileSystemEventHandler):
    """One root under an observer of its own. The same questions as a tree of inotify watches."""

    def __init__(self, rules: IgnoreRules, post: Post, make: Callable[[], BaseObserver] = Observer) -> None:
        self.rules = rules
        self.uncovered: dict[bytes, str] = {}
        self.gone = True
        self.rescan_reason = ""
        self._post = post
        self._make = make
        self._observer: BaseObserver | None = None
        self._identity: tuple[int, int] | None = None
        self._explainer = Explainer(rules)
        self._lock = threading.Lock()

    def stop(self) -> None:
        with self._lock:
            self._stop()

    @property
    def watch_count(self) -> int:
        return 0 if self._observer is None else 1

    def places_uncovered(self) -> dict[bytes, str]:
        return dict(self.uncovered)

    def check_root(self) -> bool:
        """Whether the root's folder is there and watched; see the inotify tree."""
        try:
            status = os.stat(self.rules.root.path)
        except OSError:
            status = None
        identity = None if status is None else (status.st_dev, status.st_ino)
        with self._lock:
            alive = self._observer is not None and self._observer.is_alive()
            if identity is not None and identity == self._identity and alive:
                return True
            had = self._identity
            self._stop()
            if identity is not None:
                self._start(identity)
            if had is not None:
                self._whole("root gone" if identity is None else "root came back")
            return not self.gone

    def compare(self, folders: list[bytes]) -> int:  # noqa: ARG002 - an observer watches whole trees
        return 0

    def lose_events(self, reason: str) -> None:
        self._whole(reason)

    def _start(self, identity: tuple[int, int]) -> None:
        observer = self._make()
        try:
            observer.schedule(self, os.fsdecode(self.rules.root.path), recursive=True, event_filter=EVENTS)
            observer.start()
        except OSError as error:
            self.uncovered = {b"": error.strerror or str(error)}
            return
        self.uncovered = {}
        self._observer, self._identity, self.gone = observer, identity, False

    def _stop(self) -> None:
        observer, self._observer, self._identity, self.gone = self._observer, None, None, True
        if observer is not None:
            observer.stop()
            observer.join(timeout=5)

    def _whole(self, reason: str) -> None:
        self.rescan_reason = reason
        self._post(Hint(self.rules.root.name, b"", folder=True))

    def on_any_event(self, event: FileSystemEvent) -> None:
        try:
            self._on_event(event)
        except Exception as error:  # noqa: BLE001 - an escaped one would end all watching; the root is walked instead
            self._whole(f"an event could not be handled: {error!r}")

    def _on_event(self, event: FileSystemEvent) -> None:
        left = isinstance(event, FileDeletedEvent | DirDeletedEvent)
        moved = isinstance(event, FileMovedEvent | DirMovedEvent)
        self._on_path(os.fsencode(event.src_path), deleted=left or moved, folder=event.is_directory)
        if moved:
            self._on_path(os.fsencode(event.dest_path), deleted=False, folder=event.is_directory)

    def _on_path(self, place: bytes, *, deleted: bool, folder: bool) -> None:
        place = place.replace(b"\\", b"/") if os.sep == "\\" else place
        root = self.rules.root
        path = paths.relative(place, root.path)
        if path is None:
            path = paths.relative(place, os.path.realpath(root.path))
        if path is None:
            return
        if not path:
            self._whole("root changed")
            return
        if paths.name_of(path) in RULE_FILES:
            self._explainer = Explainer(self.rules)
            self._post(Hint(root.name, paths.parent(path), folder=True))
        if self._explainer(path, is_folder=folder) is None:
            self._post(Hint(root.name, path, deleted=deleted, folder=folder))


class ObserverGroup:
    """Each root has an observer of its own, so they share nothing."""

    failure = ""

    def tree(self, rules: IgnoreRules, post: Post) -> ObservedTree:
        return ObservedTree(rules, post)

    def is_alive(self) -> bool:
        return True

    def stop(self) -> None:
        """The trees stop by themselves."""
