"""The roots as they stand while the daemon runs: their rules, whether they can be believed, how they are watched.

What must stay true: a root that cannot be looked at is `unavailable` and says why; nobody concludes anything from
what is absent there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ragd.daemon.config_roots import Root
from ragd.daemon.files import paths
from ragd.daemon.files.ignore import IgnoreRules
from ragd.daemon.files.roots import RootHealth, RootIdentity, RootRules, arrange, check_root, owner
from ragd.daemon.plan import held_problem
from ragd.store.catalog import Catalog
from ragd.store.types import RootView


@dataclass(slots=True)
class RootState:
    """One root. Written by the worker's thread alone."""

    rules: RootRules
    labels: frozenset[str]
    ignore: IgnoreRules
    state: str = "ok"
    """ok, unavailable, degraded or mass_deletion"""
    problem: str = ""
    unread: dict[bytes, str] = field(default_factory=dict)
    """Places that could not be listed, with the error."""
    held: frozenset[bytes] = frozenset()
    """Files that are kept though nothing is there any more: too many went at once."""
    is_walked: bool = False
    """Whether the whole root was walked since the start."""
    confirmed: bool = False
    """A person confirmed what is held; good for the next walk."""
    identity: RootIdentity | None = None

    @property
    def name(self) -> str:
        return self.rules.name

    @property
    def path_text(self) -> str:
        return paths.show(self.rules.path)

    def view(self) -> RootView:
        unread = tuple(self.unread)
        return RootView(self.name, self.path_text, self.state, self.labels, self.held, unread, self._has_changed)

    def _has_changed(self, path: bytes, mtime_ns: int) -> bool:
        """For a file of this root: what was not walked yet since it was saved, or since the daemon was off."""
        try:
            return os.stat(paths.join(self.rules.path, path)).st_mtime_ns != mtime_ns
        except OSError:
            return True

    def health(self, *, has_files: bool) -> RootHealth:
        """Look whether the root is there, and note it."""
        health = check_root(self.rules.path, self.identity, has_files=has_files)
        if not health.ok:
            self.state = "unavailable"
            self.problem = f"{self.path_text}: {health.detail}; what is indexed of it stays"
        return health

    def note_walk(
        self, places: Sequence[bytes], unread: Mapping[bytes, str], held: Iterable[bytes], files: int
    ) -> None:
        """What a walk of some places of a healthy root found out; what is known of other places holds on.
        `files`: how many are indexed of the root."""

        def walked(path: bytes) -> bool:
            return any(paths.is_under(path, place) for place in places)

        self.unread = {place: error for place, error in self.unread.items() if not walked(place)} | dict(unread)
        self.held = frozenset(path for path in self.held if not walked(path)).union(held)
        self._restate(files)

    def note_forgotten(self, forgotten: Iterable[bytes], files: int) -> None:
        """A person had these files forgotten; `files` are left of the root."""
        if self.held:
            self.held = self.held.difference(forgotten)
            self._restate(files)

    def _restate(self, files: int) -> None:
        if self.held:
            self.state = "mass_deletion"
            self.problem = held_problem(len(self.held), files).replace("ROOT", self.name)
        elif self.unread:
            place, error = next(iter(self.unread.items()))
            more = f" and {len(self.unread) - 1} more" if len(self.unread) > 1 else ""
            self.state = "degraded"
            self.problem = f"cannot list {paths.show(paths.join(self.rules.path, place))}{more}: {error}"
        else:
            self.state, self.problem = "ok", ""


class RootSet:
    """Every configured root, by name."""

    def __init__(self, roots: Iterable[Root], kept_out: Iterable[bytes]) -> None:
        """`kept_out`: absolute paths of the daemon's own files, never indexed."""
        configured = {root.name: root for root in roots}
        arranged = arrange([_rules_of(root) for root in configured.values()], kept_out)
        self.by_name = {
            rules.name: RootState(rules, frozenset(configured[rules.name].labels), IgnoreRules(rules))
            for rules in arranged
        }
        self.configured = configured
        self._rules = arranged

    def __iter__(self) -> Iterator[RootState]:
        return iter(self.by_name.values())

    def views(self) -> dict[str, RootView]:
        return {name: root.view() for name, root in self.by_name.items()}

    def find(self, path: bytes) -> tuple[RootState, bytes] | None:
        """The innermost root an absolute path lies in, and the path in it."""
        found = owner(path, self._rules)
        return None if found is None else (self.by_name[found[0].name], found[1])

    def remember(self, catalog: Catalog) -> None:
        """Read which folders stood at the roots' paths when they were last believed."""
        for root in self.by_name.values():
            kept = catalog.meta(_key(root.name))
            if kept is not None:
                path, device, inode = json.loads(kept)
                if path == root.path_text:
                    root.identity = RootIdentity(device, inode)

    def believe(self, root: RootState, identity: RootIdentity | None, catalog: Catalog) -> None:
        """A walk of the root was believed: keep which folder it was."""
        if identity is not None and identity != root.identity:
            root.identity = identity
            value = json.dumps([root.path_text, identity.device, identity.inode])
            catalog.set_meta(_key(root.name), value, durable=False)


def _key(root: str) -> str:
    return f"root:{root}"


def _rules_of(root: Root) -> RootRules:
    return RootRules(
        name=root.name,
        path=os.fsencode(root.path),
        include=root.include,
        exclude=root.exclude,
        follow_symlinks=root.follow_symlinks,
        gitignore=root.gitignore,
    )
