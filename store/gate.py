"""Who may see what: the one question every read asks.

What must stay true: no text, path or count of a place leaves the store for a client unless `visible` said yes
for it. Labels come from the configuration as it is when the query runs, never from what was stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ragd.store.types import Client, RootView


@dataclass(frozen=True, slots=True)
class Place:
    """A file a reader asks about: the root it lies in, None if that root is no longer configured, and its
    path."""

    root: RootView | None
    path: bytes = b""


def labels_of(place: Place) -> frozenset[str]:
    """The labels a client must hold to see the place."""
    return place.root.labels if place.root is not None else frozenset()


def visible(client: Client, place: Place) -> bool:
    """A place is visible to a client that holds all its labels; a place without labels to everybody; a place
    of a root that is no longer configured to nobody."""
    if place.root is None:
        return False
    return client.labels is None or labels_of(place) <= client.labels


def visible_roots(client: Client, roots: Mapping[str, RootView]) -> dict[str, RootView]:
    """The roots with at least one place the client may see, by name: what a query may look into at all."""
    return {name: root for name, root in roots.items() if visible(client, Place(root))}
