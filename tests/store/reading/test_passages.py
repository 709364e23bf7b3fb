"""Reading chunks, what is around them, and lines of files."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reading_kit import OWNER, World

from ragd.store.errors import FilterError, PlaceNotFoundError
from ragd.store.passages import get_chunk, get_lines
from ragd.store.places import candidate_places, place_fields, raw_paths
from ragd.store.types import FailFile, FileStat, RootView


def lines_of(world: World, path: str, start: int | None = None, end: int | None = None) -> dict[str, object]:
    with world.store.snapshot() as snapshot:
        return get_lines(
            snapshot,
            OWNER,
            world.roots,
            "notes",
            path.encode(),
            read_text=world.read_text,
            start=start,
            end=end,
        )


def test_a_chunk_its_neighbours_and_its_parent(world: World) -> None:
    blocks = ["one", "two\nlines", "three", "four", "five"]
    ids = world.put("a.md", *blocks, parents=[[1, 2, 3]])
    with world.store.snapshot() as snapshot:
        alone = get_chunk(snapshot, OWNER, world.roots, ids[1])
        around = get_chunk(snapshot, OWNER, world.roots, ids[0], neighbours=1)
        whole = get_chunk(snapshot, OWNER, world.roots, ids[2], parent=True)
        orphan = get_chunk(snapshot, OWNER, world.roots, ids[4], parent=True)
    assert alone["text"] == "two\nlines"
    assert (alone["path"], alone["start_line"], alone["end_line"]) == ("/home/me/notes/a.md", 3, 4)
    assert around["text"] == "one\n\ntwo\nlines"
    assert (around["start_line"], around["end_line"], around["ids"]) == (1, 4, ids[:2])
    assert whole["text"] == "\n\n".join(blocks[1:4])
    assert orphan["text"] == "five"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    blocks=st.lists(
        st.text(alphabet="abc \n", min_size=1, max_size=12).map(lambda text: "x" + text.rstrip() + "y"),
        min_size=1,
        max_size=6,
        unique=True,
    ),
    separator=st.sampled_from(["\n", "\n\n", "\n\n\n", " "]),
    count=st.integers(0, 6),
    data=st.data(),
)
def test_joined_chunks_are_the_lines_of_the_file(
    world: World, blocks: list[str], separator: str, count: int, data: st.DataObject
) -> None:
    ids = world.put("a.md", *blocks, separator=separator)
    middle = data.draw(st.integers(0, len(ids) - 1))
    with world.store.snapshot() as snapshot:
        passage = get_chunk(snapshot, OWNER, world.roots, ids[middle], neighbours=count)
    held = blocks[max(middle - count, 0) : middle + count + 1]
    assert passage["text"] == separator.join(held)
    if separator != " ":
        assert lines_of(world, "a.md", passage["start_line"], passage["end_line"])["text"] == passage["text"]


def test_lines_of_a_file(world: World) -> None:
    world.put("a.md", "one", "three\nfour")
    assert lines_of(world, "a.md", 3, 4) == {
        "path": "/home/me/notes/a.md", "rel": "a.md", "root": "notes", "type": "markdown", "title": "Title",
        "start_line": 3, "end_line": 4, "text": "three\nfour", "stale": False,
    }  # fmt: skip
    assert lines_of(world, "a.md")["text"] == "one\n\nthree\nfour"
    assert lines_of(world, "a.md", 4, 99)["end_line"] == 4
    with pytest.raises(FilterError, match="4 lines") as caught:
        lines_of(world, "a.md", 5)
    assert caught.value.field == "start"


def test_a_canonical_text_has_the_lines(world: World) -> None:
    world.put("page.html", "first", "second", canonical=True)
    world.texts["notes", b"page.html"] = "<p>these are the bytes, not the text</p>"
    assert lines_of(world, "page.html", 3)["text"] == "second"


def test_a_file_that_cannot_be_read_now_is_answered_from_the_index(world: World) -> None:
    world.put("a.md", "one", "three", "five")
    del world.texts["notes", b"a.md"]
    answer = lines_of(world, "a.md", 2, 4)
    assert (answer["text"], answer["start_line"], answer["end_line"], answer["stale"]) == (
        "three",
        3,
        3,
        True,
    )
    with pytest.raises(PlaceNotFoundError):
        lines_of(world, "a.md", 9)


def test_only_what_is_indexed_is_read(world: World) -> None:
    world.texts["notes", b"secret.env"] = "TOKEN=1"
    with pytest.raises(PlaceNotFoundError):
        lines_of(world, "secret.env")


def test_a_file_that_failed_later_is_stale(world: World) -> None:
    (chunk_id,) = world.put("a.md", "one")
    failed = FailFile("notes", b"a.md", FileStat(2, 2, 2, 7, 1), "parse_error", "broken", b"x")
    world.store.commit([failed], world.embedder)
    assert lines_of(world, "a.md")["stale"] is True
    with world.store.snapshot() as snapshot:
        assert get_chunk(snapshot, OWNER, world.roots, chunk_id)["stale"] is True
    (hit,) = world.search("one")["hits"]
    assert hit["stale"] is True


# --- places


@given(st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=3).map(b"/".join))
def test_a_place_that_went_out_comes_back(path: bytes) -> None:
    root = RootView("r", "/some where/r", "ok")
    shown = str(place_fields(root, path)["path"])
    places = [raw for found, raw in candidate_places(shown, {"r": root}) if found is root]
    assert path in places


def test_the_innermost_root_is_asked_first() -> None:
    roots = {"outer": RootView("outer", "/a", "ok"), "inner": RootView("inner", "/a/b", "ok")}
    places = [(root.name, raw) for root, raw in candidate_places("/a/b/c.md", roots)]
    assert places == [("inner", b"c.md"), ("outer", b"b/c.md")]
    assert [root.name for root, _ in candidate_places("c.md", roots)] == ["outer", "inner"]
    assert list(candidate_places("/elsewhere", roots)) == []
    assert [raw for _, raw in candidate_places("/x", {"all": RootView("all", "/", "ok")})] == [b"x"]


def test_half_a_surrogate_pair_in_a_path_is_no_error() -> None:
    assert raw_paths("a\ud800") == [b"a\xed\xa0\x80"]
    assert raw_paths("a\udce9") == [b"a\xe9"]
