"""A scope walked and planned: what is on disk there, against what the catalog remembers.

What must stay true: the plan is made from one walk and from rows of the same places; whether an absence is believed
is asked again after the walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ragd.daemon.files import paths
from ragd.daemon.files.walk import Walk
from ragd.daemon.plan import Action, Plan, PlanInput
from ragd.daemon.recipes import Recipes
from ragd.daemon.root_set import RootSet, RootState
from ragd.store.store import Store


@dataclass(slots=True)
class Survey:
    """One walk of some places of a root. Iterate `actions` once; then the numbers are complete."""

    root: RootState
    walk: Walk
    plan: Plan

    def actions(self) -> Iterator[Action]:
        return iter(self.plan)


class Surveyor:
    """For the worker's thread."""

    def __init__(
        self,
        roots: RootSet,
        recipes: Recipes,
        store: Store,
        *,
        max_bytes: int,
        clock_ns: Callable[[], int],
    ) -> None:
        self._roots = roots
        self._recipes = recipes
        self._store = store
        self._max_bytes = max_bytes
        self._clock_ns = clock_ns

    def survey(self, root: RootState, places: tuple[bytes, ...], saw_deleted: Callable[[bytes], bool]) -> Survey | None:
        """None when the root cannot be looked at; it then says why."""
        known_files = self.files_in(root.name)
        # An empty folder that is not the known one is what an unmounted disk leaves behind, unless a person says no.
        is_doubted = known_files > 0 and not root.confirmed
        health = root.health(has_files=is_doubted)
        if not health.ok:
            return None
        walk = Walk(root.ignore, places)
        generation = self._store.target.id
        rows: Iterable[Any] = chain.from_iterable(
            self._store.catalog.plan_rows(generation, root.name, place) for place in paths.outermost(places)
        )
        seen: Iterable[Any] = walk
        if len(places) > 1:
            # A file a-b sorts before what is in the folder a: only one place keeps the order by itself.
            rows, seen = _sorted(rows), _sorted(walk)
        plan = Plan(
            PlanInput(
                seen=seen,
                rows=rows,
                recipe_of=self._recipes.of_root(root.name),
                now_ns=self._clock_ns(),
                max_bytes=self._max_bytes,
                covers=walk.covers,
                why_ignored=root.ignore.explainer(),
                root_is_healthy=lambda: root.health(has_files=is_doubted).ok,
                saw_deleted=saw_deleted,
                files_in_root=known_files,
                replaced=health.replaced,
                confirmed=root.confirmed,
            )
        )
        return Survey(root, walk, plan)

    def settle(self, survey: Survey, places: tuple[bytes, ...]) -> None:
        """After its actions were taken: what the walk says about the root itself."""
        root = survey.root
        if root.state == "unavailable" and survey.plan.protected:
            return  # it went while it was walked
        root.note_walk(places, survey.walk.unread, survey.plan.held, survey.plan.given.files_in_root)
        if places == (b"",):
            root.is_walked = True
            root.confirmed = False
            if not survey.plan.held:
                health = root.health(has_files=False)
                self._roots.believe(root, health.identity, self._store.catalog)

    def files_in(self, root: str) -> int:
        """Files of a root in the generation that is indexed into."""
        return sum(tally.files for tally in self._store.catalog.tallies(self._store.target.id) if tally.root == root)


def _sorted(entries: Iterable[Any]) -> list[Any]:
    return sorted(entries, key=lambda entry: bytes(entry.path))
