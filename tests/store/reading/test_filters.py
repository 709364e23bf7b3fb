"""Filters against brute force: what meets them is found, nothing else, and never fewer than exist."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reading_kit import World

from ragd.store import dense
from ragd.store.errors import FilterError
from ragd.store.filters import literal_prefix, path_matches

TYPES = ["markdown", "python", 'it\'s 100% "odd"']
KINDS = ["section", "table"]
LANGUAGES = ["en", "de"]
TAGS = ["x", "50%", "o'clock"]
FILES = [
    ("notes", "docs/a.md"), ("notes", "docs/deep/b.md"), ("notes", "src/it's 100%.py"),
    ("notes", "[odd]/c.txt"), ("work", "docs/a.md"), ("work", "e.py"), ("open", "f.md"),
    ("open", "docs_not/g.md"),
]  # fmt: skip
GLOBS = [
    "*.md",
    "docs/**",
    "docs/*.md",
    "/e.py",
    "src/it's 100%.py",
    "\\[odd\\]/*",
    "docs",
    "nothing/*",
    "%",
    "'",
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> World:
    """8 files of 4 chunks each, every property spread differently."""
    world = World(tmp_path_factory.mktemp("library") / "state")
    world.add_root("work", "team", "secret")
    world.add_root("open", "team")
    for number, (root, path) in enumerate(FILES):
        world.put(
            path,
            *(f"alpha {root} {path} part {part}" for part in range(4)),
            root=root,
            type_=TYPES[number % 3],
            language=LANGUAGES[number % 2],
            languages=[LANGUAGES[(number + part) % 2] if part else None for part in range(4)],
            kinds=[KINDS[(number + part) % 2] for part in range(4)],
            pages=[part % 3 + 1 if number % 2 else None for part in range(4)],
            tags=[TAGS[number % 3], TAGS[(number + 1) % 3]][: number % 3],
            mtime_ns=number * 1_000,
        )
    return world


def everything(world: World) -> list[dict[str, Any]]:
    """Every chunk with its properties, read from the catalog row by row."""
    with world.store.snapshot() as snapshot:
        return [
            {
                "id": row.id,
                "root": root,
                "path": path,
                "type": row.type,
                "kind": row.kind,
                "language": row.language or LANGUAGES[number % 2],
                "page": row.page,
                "mtime_ns": row.mtime_ns,
                "tags": row.tags,
                "labels": world.roots[root].labels,
            }
            for number, (root, path) in enumerate(FILES)
            for row in snapshot.file_chunks(root, path.encode())
        ]


def brute_force(world: World, filters: dict[str, Any]) -> set[str]:
    tests: dict[str, Callable[[dict[str, Any], Any], bool]] = {
        "root": lambda chunk, wanted: chunk["root"] in wanted,
        "type": lambda chunk, wanted: chunk["type"] in wanted,
        "kind": lambda chunk, wanted: chunk["kind"] in wanted,
        "language": lambda chunk, wanted: chunk["language"] in wanted,
        "label": lambda chunk, wanted: bool(chunk["labels"] & set(wanted)),
        "tag": lambda chunk, wanted: bool(set(chunk["tags"]) & set(wanted)),
        "page": lambda chunk, wanted: chunk["page"] == wanted,
        "since_ns": lambda chunk, wanted: chunk["mtime_ns"] >= wanted,
        "path": lambda chunk, wanted: any(path_matches(glob, chunk["path"].encode()) for glob in wanted),
    }
    return {
        chunk["id"] for chunk in everything(world) if all(tests[key](chunk, value) for key, value in filters.items())
    }


def some(values: list[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from([*values, "unknown"]), max_size=3).map(tuple)


FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "root": some(["notes", "work", "open"]),
        "type": some(TYPES),
        "kind": some(KINDS),
        "language": some(LANGUAGES),
        "label": some(["team", "secret"]),
        "tag": some(TAGS),
        "page": st.integers(1, 4),
        "since_ns": st.integers(0, 9_000),
        "path": some(GLOBS),
    },
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(filters=FILTERS, mode=st.sampled_from(["hybrid", "dense", "lexical"]), exact=st.booleans())
def test_fault_g3_filters_find_what_brute_force_finds(
    library: World, filters: dict[str, Any], mode: str, exact: bool
) -> None:
    """Every word of the query is in every chunk, so all that meet the filter must come, in all three
    modes."""
    patch = pytest.MonkeyPatch()
    try:
        if not exact:
            patch.setattr(dense, "EXACT_CHUNKS", 2)  # then the index is asked, and the cache streamed in blocks
            patch.setattr(dense, "MOST_ASKED", 8)
        hits = library.search("alpha", 100, mode, **filters)["hits"]
    finally:
        patch.undo()
    assert {hit["id"] for hit in hits} == brute_force(library, filters)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(filters=FILTERS, k=st.integers(1, 8))
def test_the_nearest_that_meet_a_filter_are_the_nearest_of_all_that_meet_it(
    library: World, filters: dict[str, Any], k: int
) -> None:
    every = library.search("alpha docs part 2", 100, "dense")["hits"]
    allowed = brute_force(library, filters)
    expected = [hit["scores"]["dense"] for hit in every if hit["id"] in allowed][:k]
    found = [hit["scores"]["dense"] for hit in library.search("alpha docs part 2", k, "dense", **filters)["hits"]]
    assert found == pytest.approx(expected, abs=1e-6)


def test_fault_g3_no_filter_an_empty_one_and_one_value(library: World) -> None:
    total = len(everything(library))
    assert len(library.search("alpha", 100)["hits"]) == total
    assert library.search("alpha", 100, type=())["hits"] == []
    assert 0 < len(library.search("alpha", 100, type=("python",))["hits"]) < total
    assert 0 < len(library.search("alpha", 100, type=("python",), path=("*.md",))["hits"]) < total


@pytest.mark.parametrize("glob", ["", "/", "   ", "[", "a/***/["])
def test_a_glob_that_means_nothing_matches_nothing_or_names_its_field(library: World, glob: str) -> None:
    hits, field = [], "path"
    try:
        hits = library.search("alpha", path=(glob,))["hits"]
    except FilterError as error:
        field = error.field
    assert (hits, field) == ([], "path")


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("*.md", "a.md", True),
        ("*.md", "deep/a.md", True),
        ("docs/*.md", "docs/a.md", True),
        ("docs/*.md", "docs/deep/a.md", False),
        ("docs/*.md", "other/docs/a.md", False),
        ("docs/**", "docs/deep/a.md", True),
        ("docs/**/a.md", "docs/a.md", True),
        ("docs", "docs/deep/a.md", True),
        ("docs/", "docs/a.md", True),
        ("./docs/a.md", "docs/a.md", True),
        ("DOCS/*", "docs/a.md", False),
        ("!x", "!x", True),
        ("#x", "#x", True),
        ("a b ", "a b ", True),
        ("100%'s", "deep/100%'s", True),
        ("a\\xe9.md", "a\\xe9.md", True),
    ],
)
def test_globs_read_as_in_gitignore(glob: str, path: str, expected: bool) -> None:
    assert path_matches(glob, path.encode()) is expected


def test_a_byte_that_is_not_utf8_matches_as_it_is_shown() -> None:
    assert path_matches("caf\\xe9/*.md", b"caf\xe9/a.md")
    assert path_matches("caf*/*.md", b"caf\xe9/a.md")
    assert not path_matches("cafxe9/*.md", b"caf\xe9/a.md")


@given(
    glob=st.lists(st.sampled_from(["docs", "/", "*", "**", "a", ".md", "?", "[ab]", "\\*", "é"]), max_size=6).map(
        "".join
    ),
    path=st.lists(st.sampled_from(["docs", "a", "b.md", "é", "*"]), min_size=1, max_size=4).map("/".join),
)
def test_every_match_begins_with_the_literal_prefix(glob: str, path: str) -> None:
    try:
        matches = path_matches(glob, path.encode())
    except FilterError:
        return
    if matches:
        assert path.encode().startswith(literal_prefix(glob))


def test_selective_filters_do_not_ask_the_index(library: World) -> None:
    asked = len(library.index.asked)
    library.search("alpha", 3, "dense", type=("python",))
    assert len(library.index.asked) == asked
    library.search("alpha", 3, "dense")
    assert len(library.index.asked) == asked + 1


def test_a_root_that_was_emptied_costs_no_filter(tmp_path: Path) -> None:
    """A root without chunks that is no longer configured must not make every query selective."""
    world = World(tmp_path / "state")
    world.put("a.md", "alpha", root="gone")
    world.put("b.md", "alpha beta")
    assert [hit["rel"] for hit in world.search("alpha", mode="dense")["hits"]] == ["b.md"]
    assert world.index.asked == []
    world.forget("a.md", root="gone")
    world.search("alpha", mode="dense")
    assert len(world.index.asked) == 1
    world.close()


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_an_empty_answer_names_the_filters_that_may_be_mistyped(library: World, mode: str) -> None:
    assert library.search("alpha", mode=mode)["notice"] is None
    answer = library.search("alpha", mode=mode, type=("markdwn",), since_ns=5)
    assert (answer["hits"], answer["notice"]) == ([], "nothing was found within the filters (type: markdwn; since)")
    answer = library.search("alpha", mode=mode, root=("nots",))
    assert answer["notice"].startswith("there is no root nots; there are: ")
