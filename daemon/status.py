"""The answer of `status`: what a person or an assistant should know right now.

What must stay true: it is made from what is in memory and from counts the catalog keeps, so it costs the same at ten
files and at a million, and never waits for the worker, the model or the vector index.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from ragd.daemon.model import HeldModel
from ragd.daemon.root_set import RootSet, RootState
from ragd.daemon.worker import Worker
from ragd.store.catalog import Tally
from ragd.store.gate import visible_roots
from ragd.store.store import Store
from ragd.store.types import Client


@dataclass(slots=True)
class WatchState:
    """How changes of a root are noticed: native, polling or off; and what is wrong with it."""

    modes: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    last_rescan_reason: str | None = None


@dataclass(slots=True)
class StatusReport:
    """Everything a status is made from."""

    store: Store
    roots: RootSet
    worker: Worker
    model: HeldModel
    watch: Callable[[], WatchState]
    is_stopping: Callable[[], bool]
    is_served: bool
    """Whether a daemon runs; an engine for one command has no state to wait for."""
    started: float = field(default_factory=time.time)

    def answer(self, client: Client) -> dict[str, Any]:
        """Only roots the client may see, and counts of those alone."""
        seen = visible_roots(client, self.roots.views())
        live, building = self.store.live, self.store.building
        tallies = [tally for tally in self.store.catalog.tallies(live.id) if tally.root in seen]
        target = tallies
        if building is not None:
            target = [tally for tally in self.store.catalog.tallies(building.id) if tally.root in seen]
        watch = self.watch()
        problems = self.problems(watch, [self.roots.by_name[name] for name in seen])
        done, total = _files(target), _files(tallies) if building is not None else _files(target)
        pending = self.worker.pending
        # What was repaired at the start is told, and no reason to call the daemon degraded for ever.
        state = self._state(len(problems) > len(self.store.problems), pending)
        answer: dict[str, Any] = {
            "state": state,
            "version": version("ragd"),
            "model": self.model.identity.name,
            "model_state": self.model.state,
            "generation": {
                "live": live.id,
                "building": None if building is None else building.id,
                "done": done,
                "total": max(total, done) if building is not None else done + len(self.worker.queue),
            },
            "roots": [_root_answer(self.roots.by_name[name], tallies, watch) for name in seen],
            "pending": pending,
            "failed": _files(tally for tally in tallies if tally.state == "failed"),
            "skipped": _files(tally for tally in tallies if tally.state == "skipped"),
            "chunks": sum(tally.chunks for tally in tallies),
            "embedded": {
                "texts": self.worker.totals.texts_embedded,
                "tokens": self.worker.totals.tokens_embedded,
            },
            "last_walk": self.worker.last_walk(),
            "last_rescan_reason": watch.last_rescan_reason,
            "problems": problems,
            "started": _rfc3339(self.started),
        }
        if building is not None:
            answer["progress"] = f"re-embedding {min(done, total)}/{max(total, done)}"
        return answer

    def problems(self, watch: WatchState, roots: Iterable[RootState]) -> list[str]:
        found = [root.problem for root in roots if root.problem]
        found += watch.problems + self.store.problems
        if self.worker.problem:
            found.append(self.worker.problem)
        return found

    def _state(self, has_problems: bool, pending: int) -> str:
        if self.is_stopping():
            return "stopping"
        if self.is_served and not all(root.is_walked or root.problem for root in self.roots):
            return "starting"
        if self.store.building is not None:
            return "rebuilding"
        if pending:
            return "indexing"
        return "degraded" if has_problems else "idle"


def _root_answer(root: RootState, tallies: list[Tally], watch: WatchState) -> dict[str, Any]:
    own = [tally for tally in tallies if tally.root == root.name]
    return {
        "name": root.name,
        "path": root.path_text,
        "state": root.state,
        "problem": root.problem or None,
        "files": _files(tally for tally in own if tally.state == "indexed"),
        "chunks": sum(tally.chunks for tally in own),
        "failed": _files(tally for tally in own if tally.state == "failed"),
        "skipped": _files(tally for tally in own if tally.state == "skipped"),
        "watch": watch.modes.get(root.name, "off"),
        "labels": sorted(root.labels),
    }


def _files(tallies: Iterable[Tally]) -> int:
    return sum(tally.files for tally in tallies)


def _rfc3339(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
