"""The watcher: turns what happens to the files of the roots into hints where to look.

What must stay true: losing the watcher, or a part of it, costs time and never correctness. What it cannot
watch it names (`to_poll`), what it lost it has walked, and it says so (`problems`). It never raises into the
daemon's start.

`health` is to be called every few seconds: roots that went and came back, watches that became free, a reader
that ended. The watch set leaves out ignored folders, asks only for changes, and is checked against each whole
walk (`compare`). Changes to ignore files above a root and to .git/info/exclude are not watched: the next walk
sees them.
"""

from __future__ import annotations

import errno
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ragd.daemon.files import mounts, paths
from ragd.daemon.files.hints import Hint, Post
from ragd.daemon.files.ignore import IgnoreRules

LIMITS = Path("/proc/sys/fs/inotify")


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """`poll`: "auto" polls what gives no events, "always" does not watch at all, "never" does not poll."""

    poll: str = "auto"


class Tree(Protocol):
    """How one root is watched."""

    rules: IgnoreRules
    gone: bool
    rescan_reason: str

    @property
    def watch_count(self) -> int: ...

    def check_root(self) -> bool: ...

    def places_uncovered(self) -> dict[bytes, str]:
        """Folders that are not watched, nor what is below them, and why."""

    def compare(self, folders: list[bytes]) -> int: ...

    def lose_events(self, reason: str) -> None: ...

    def stop(self) -> None: ...


class Group(Protocol):
    """What the trees of all roots share."""

    failure: str

    def tree(self, rules: IgnoreRules, post: Post) -> Tree: ...

    def is_alive(self) -> bool: ...

    def stop(self) -> None: ...


def open_group() -> Group:
    """The platform's way of watching. Raises OSError when the system gives no (further) inotify instance."""
    if sys.platform == "linux":
        from ragd.daemon.files.inotify_tree import InotifyGroup

        group = InotifyGroup()
        group.start()
        return group
    else:  # a type checker follows the branch of its own platform alone
        from ragd.daemon.files.observer import ObserverGroup

        return ObserverGroup()


class Watcher:
    """Thread-safe; `post` is called from the watcher's own thread and from the callers of `start` and
    `health`."""

    def __init__(
        self,
        roots: Sequence[IgnoreRules],
        post: Post,
        settings: WatchSettings = WatchSettings(),
        *,
        open_group: Callable[[], Group] = open_group,
        gives_events: Callable[[bytes], bool] = mounts.gives_events,
    ) -> None:
        self._rules = {rules.root.name: rules for rules in roots}
        self._post = post
        self._settings = settings
        self._open_group = open_group
        self._gives_events = gives_events
        self._lock = threading.RLock()
        self._group: Group | None = None
        self._trees: dict[str, Tree] = {}
        self._remote: frozenset[str] = frozenset()
        self._failure = ""

    def start(self) -> None:
        """Watch every root; returns when the watches are set. Walk after this, so that nothing falls in
        between."""
        with self._lock:
            self._remote = frozenset(
                name
                for name, rules in self._rules.items()
                if self._settings.poll == "auto" and not self._gives_events(rules.root.path)
            )
            if self._settings.poll != "always":
                self._open()

    def _open(self) -> None:
        try:
            self._group = self._open_group()
        except OSError as error:
            self._failure = _instance_problem(error)
            return
        self._failure = ""
        for name, rules in self._rules.items():
            tree = self._group.tree(rules, self._post)
            self._trees[name] = tree
            tree.check_root()

    def stop(self) -> None:
        """Idempotent. No hint comes after it has returned."""
        with self._lock:
            group, self._group = self._group, None
            trees, self._trees = list(self._trees.values()), {}
        for tree in trees:
            tree.stop()
        if group is not None:
            group.stop()

    def health(self) -> bool:
        """Look after the roots and the watches; cheap. True when every root is watched."""
        with self._lock:
            if self._settings.poll == "always":
                return True
            if self._group is not None and not self._group.is_alive():
                self._failure = self._group.failure or "watching ended"
                self.stop()
            if self._group is None:
                return self._open_again()
            return all([tree.check_root() for tree in self._trees.values()])

    def _open_again(self) -> bool:
        self._open()
        for tree in self._trees.values():
            tree.lose_events("watching began again")
        return bool(self._trees) or not self._failure

    def compare(self, root: str, folders: list[bytes]) -> int:
        """Check the watch set against the folders that a whole walk of a root listed (`Walk.folders`): what
        lacked a watch gets one and a hint. Returns how many got one."""
        tree = self._trees.get(root)
        return 0 if tree is None or tree.gone else tree.compare(folders)

    def to_poll(self) -> list[Hint]:
        """Places without events, for the inbox every `poll_seconds`."""
        if self._settings.poll == "never":
            return []
        hints = []
        for name in self._rules:
            tree = self._trees.get(name)
            if tree is None or name in self._remote:
                hints.append(Hint(name, b"", folder=True))
            else:
                hints += [Hint(name, path, folder=True) for path in sorted(tree.places_uncovered())]
        return hints

    def mode(self, root: str) -> str:
        """How changes of a root are noticed: native, polling or off. Native roots may have places that are
        polled."""
        tree = self._trees.get(root)
        if tree is not None and root not in self._remote and b"" not in tree.places_uncovered():
            return "off" if tree.gone else "native"
        return "off" if self._settings.poll == "never" else "polling"

    def problems(self) -> list[str]:
        """Why something is not watched, each with the cure."""
        found = [self._failure] if self._failure else []
        for name, tree in self._trees.items():
            uncovered = tree.places_uncovered()
            if uncovered:
                found.append(_uncovered_problem(name, tree, uncovered))
        return found

    def rescan_reason(self, root: str) -> str:
        """Why the watcher last asked for a walk of the whole root (overflow, root came back ...), or ""."""
        tree = self._trees.get(root)
        return "" if tree is None else tree.rescan_reason

    @property
    def watch_count(self) -> int:
        """Folders watched."""
        return sum(tree.watch_count for tree in self._trees.values())


def _limit(name: str) -> str:
    try:
        return f"fs.inotify.{name} (now {(LIMITS / name).read_text().strip()})"
    except OSError:
        return f"fs.inotify.{name}"


def _instance_problem(error: OSError) -> str:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return (
            f"folders are polled, not watched: the system gives no further inotify instance; "
            f"raise the sysctl {_limit('max_user_instances')}"
        )
    return f"folders are polled, not watched: {error.strerror or error}"


def _uncovered_problem(name: str, tree: Tree, uncovered: dict[bytes, str]) -> str:
    place, why = next(iter(sorted(uncovered.items())))
    shown = paths.show(paths.join(tree.rules.root.path, place))
    many = "" if len(uncovered) == 1 else f" and {len(uncovered) - 1} more folders"
    cure = f"; raise the sysctl {_limit('max_user_watches')}" if "limit" in why or "space" in why.lower() else ""
    return f"root {name}: {shown}{many} cannot be watched and is polled ({why}){cure}"
