"""The gate: who sees what, through every way of reading."""

from __future__ import annotations

import pytest
from reading_kit import OWNER, World

from ragd.store.errors import PlaceNotFoundError
from ragd.store.gate import Place, visible, visible_roots
from ragd.store.passages import get_chunk, get_lines
from ragd.store.types import Client, RootView

PLAIN = RootView("plain", "/p", "ok")
TEAM = RootView("team", "/t", "ok", frozenset({"team"}))
BOTH = RootView("both", "/b", "ok", frozenset({"team", "secret"}))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (None, {"plain", "team", "both"}),
        (frozenset(), {"plain"}),
        (frozenset({"team"}), {"plain", "team"}),
        (frozenset({"secret"}), {"plain"}),
        (frozenset({"team", "secret", "more"}), {"plain", "team", "both"}),
    ],
)
def test_a_client_sees_what_it_holds_all_labels_of(labels: frozenset[str] | None, expected: set[str]) -> None:
    client = Client("c", labels)
    roots = {root.name: root for root in (PLAIN, TEAM, BOTH)}
    assert set(visible_roots(client, roots)) == expected
    assert {name for name, root in roots.items() if visible(client, Place(root, b"a"))} == expected


def test_a_root_that_is_no_longer_configured_is_visible_to_nobody() -> None:
    assert not visible(OWNER, Place(None, b"a"))


def test_every_read_passes_the_gate(world: World) -> None:
    world.add_root("hidden", "secret")
    ids = world.put("h.md", "alpha hidden", root="hidden")
    world.put("copy.md", "alpha shared")
    world.put("copy.md", "alpha shared", root="hidden")
    guest = Client("guest", frozenset())
    for mode in ("hybrid", "dense", "lexical"):
        hits = world.search("alpha hidden", 10, mode, client=guest)["hits"]
        assert [hit["rel"] for hit in hits] == ["copy.md"]
        assert hits[0]["also_at"] == []
        assert world.search("alpha", 10, mode, client=guest, root=("hidden",))["hits"] == []
        assert world.search("alpha", 10, mode, client=guest, label=("secret",))["hits"] == []
    with world.store.snapshot() as snapshot:
        unseen, absent = [], []
        for chunk_id, found in ((ids[0], unseen), ("no such id", absent)):
            with pytest.raises(PlaceNotFoundError) as caught:
                get_chunk(snapshot, guest, world.roots, chunk_id)
            found.append(str(caught.value).replace(chunk_id, "ID"))
        for path, found in ((b"h.md", unseen), (b"x.md", absent)):
            with pytest.raises(PlaceNotFoundError) as caught:
                get_lines(snapshot, guest, world.roots, "hidden", path, read_text=world.read_text)
            found.append(str(caught.value).replace(path.decode(), "PATH"))
        assert unseen == absent
        assert get_chunk(snapshot, OWNER, world.roots, ids[0])["text"] == "alpha hidden"


def test_a_root_taken_out_of_the_configuration_is_out_of_every_answer_at_once(world: World) -> None:
    world.add_root("old")
    (chunk_id,) = world.put("a.md", "alpha", root="old")
    assert world.search("alpha")["hits"]
    del world.roots["old"]
    for mode in ("hybrid", "dense", "lexical"):
        assert world.search("alpha", mode=mode)["hits"] == []
    with world.store.snapshot() as snapshot, pytest.raises(PlaceNotFoundError):
        get_chunk(snapshot, OWNER, world.roots, chunk_id)
