"""The laws of `VectorIndex`, for Chroma and for its twin in memory."""

from __future__ import annotations

import itertools
import math
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragd.store.chroma.client import PAGE_ROWS, ChromaIndex
from ragd.store.errors import StoreError
from ragd.store.memory_index import MemoryIndex
from ragd.store.types import VectorIndex, VectorRow

DIMENSION = 8
_names = (f"collection-{number}" for number in itertools.count())


def unit_rows(count: int, seed: int = 0, dimension: int = DIMENSION) -> Any:
    vectors = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def rows_of(vectors: Any, **metadata: Any) -> list[VectorRow]:
    return [VectorRow(f"id{number:05}", vector, metadata or {"root": "r"}) for number, vector in enumerate(vectors)]


def axis(number: int, sign: float = 1.0) -> Any:
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[number] = sign
    return vector


@pytest.fixture(scope="module", params=["memory", pytest.param("chroma", marks=pytest.mark.chroma)])
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VectorIndex]:
    """One index for all tests of this file; each test has a collection of its own."""
    folder: Path = tmp_path_factory.mktemp("index") / "chroma"
    made: VectorIndex = MemoryIndex() if request.param == "memory" else ChromaIndex(folder)
    yield made
    made.close()


@pytest.fixture
def collection(index: VectorIndex) -> str:
    name = next(_names)
    index.create(name, DIMENSION)
    return name


def test_law_create_is_idempotent_and_keeps_its_rows(index: VectorIndex, collection: str) -> None:
    index.upsert(collection, rows_of(unit_rows(3)))
    index.create(collection, DIMENSION)
    assert index.count(collection) == 3
    assert collection in index.collections()


def test_law_create_with_another_dimension_is_refused(index: VectorIndex, collection: str) -> None:
    with pytest.raises(StoreError, match="dimension"):
        index.create(collection, DIMENSION + 1)


def test_law_drop_is_idempotent(index: VectorIndex, collection: str) -> None:
    index.upsert(collection, rows_of(unit_rows(3)))
    index.drop(collection)
    index.drop(collection)
    assert collection not in index.collections()
    index.create(collection, DIMENSION)
    assert index.count(collection) == 0
    assert index.query(collection, axis(0), 5) == []


def test_law_a_row_written_twice_is_there_once(index: VectorIndex, collection: str) -> None:
    rows = rows_of(unit_rows(30))
    index.upsert(collection, rows)
    before = index.query(collection, rows[3].vector, 30)
    index.upsert(collection, rows)
    assert index.count(collection) == 30
    assert index.query(collection, rows[3].vector, 30) == before


def test_law_an_id_twice_in_one_upsert_is_one_row(index: VectorIndex, collection: str) -> None:
    index.upsert(
        collection,
        [VectorRow("a", axis(0), {"n": 1}), VectorRow("b", axis(1), {}), VectorRow("a", axis(0), {"n": 2})],
    )
    assert sorted(index.ids(collection)) == ["a", "b"]
    assert [found for found, _ in index.query(collection, axis(0), 5, {"n": 2})] == ["a"]


def test_law_nothing_to_write_and_nothing_to_delete_are_no_errors(index: VectorIndex, collection: str) -> None:
    index.upsert(collection, [])
    index.delete(collection, [])
    index.delete(collection, ["never there"])
    assert index.count(collection) == 0


def test_law_deleted_rows_are_not_found(index: VectorIndex, collection: str) -> None:
    rows = rows_of(unit_rows(150))
    index.upsert(collection, rows)
    gone = [row.id for row in rows[:120]]
    index.delete(collection, [*gone, gone[0], "never there"])
    assert sorted(index.ids(collection)) == [row.id for row in rows[120:]]
    found = [row_id for row_id, _ in index.query(collection, rows[0].vector, 150)]
    assert sorted(found) == [row.id for row in rows[120:]]
    index.upsert(collection, rows[:1])
    assert index.query(collection, rows[0].vector, 1)[0][0] == rows[0].id


def test_law_query_gives_the_nearest_best_first_and_no_more_than_there_are(index: VectorIndex, collection: str) -> None:
    vectors = unit_rows(40)
    index.upsert(collection, rows_of(vectors))
    hits = index.query(collection, vectors[7], 10)
    exact = vectors @ vectors[7]
    assert [row_id for row_id, _ in hits] == [f"id{number:05}" for number in np.argsort(-exact)[:10]]
    assert [score for _, score in hits] == pytest.approx(sorted(exact, reverse=True)[:10], abs=1e-4)
    assert len(index.query(collection, vectors[7], 1000)) == 40
    assert index.query(collection, vectors[7], 0) == []


def test_law_where_joins_by_and(index: VectorIndex, collection: str) -> None:
    vectors = unit_rows(60)
    rows = [
        VectorRow(f"id{number}", vector, {"root": f"r{number % 2}", "page": number % 3, "fresh": number % 5 == 0})
        for number, vector in enumerate(vectors)
    ]
    index.upsert(collection, rows)
    found = index.query(collection, vectors[0], 60, {"root": "r1", "page": 2, "fresh": True})
    assert {row_id for row_id, _ in found} == {f"id{n}" for n in range(60) if n % 2 and n % 3 == 2 and n % 5 == 0}
    assert index.query(collection, vectors[0], 60, {"root": "r1", "nothing": "like it"}) == []
    assert len(index.query(collection, vectors[0], 60, {})) == 60


def test_law_a_rare_value_is_found_whole(index: VectorIndex, collection: str) -> None:
    """An approximate search with a filter that few rows pass must not come back short."""
    vectors = unit_rows(4000, seed=3)
    rare = set(range(0, 4000, 400))
    index.upsert(
        collection,
        [
            VectorRow(f"id{n}", vector, {"path": "rare" if n in rare else f"p{n % 7}"})
            for n, vector in enumerate(vectors)
        ],
    )
    hits = index.query(collection, vectors[1], 20, {"path": "rare"})
    expected = sorted(rare, key=lambda n: -float(vectors[n] @ vectors[1]))
    assert [row_id for row_id, _ in hits] == [f"id{n}" for n in expected]


def test_law_ids_come_in_pages_and_whole(index: VectorIndex, collection: str) -> None:
    count = PAGE_ROWS + 10
    index.upsert(collection, rows_of(unit_rows(count)))
    assert sorted(index.ids(collection)) == [f"id{number:05}" for number in range(count)]
    assert index.count(collection) == count


def test_fault_d4_metadata_chroma_does_not_take(index: VectorIndex, collection: str) -> None:
    hostile: dict[str, Any] = {
        "none": None,
        "empty": [],
        "map": {"name": "x"},
        "nan": math.nan,
        "infinite": math.inf,
        "huge": 2**70,
        "numpy": np.int64(7),
        "numpy_text": np.str_("seven"),
        "path": os.fsdecode(b"caf\xe9.md"),
        "nul": "a\x00b",
        "": "nameless",
        "flag": True,
    }
    index.upsert(collection, [VectorRow("a", axis(0), hostile), VectorRow("b", axis(1), {})])
    assert index.count(collection) == 2
    for condition in (
        {"path": os.fsdecode(b"caf\xe9.md")},
        {"numpy": 7},
        {"numpy_text": "seven"},
        {"nul": "a\x00b"},
    ):
        assert [row_id for row_id, _ in index.query(collection, axis(0), 5, condition)] == ["a"], condition
    assert [row_id for row_id, _ in index.query(collection, axis(0), 5, {"flag": True})] == ["a"]


def test_fault_d5_metadata_is_replaced_never_merged(index: VectorIndex, collection: str) -> None:
    index.upsert(collection, [VectorRow("a", axis(0), {"line": 1, "section": "Old"})])
    index.upsert(collection, [VectorRow("a", axis(0), {"line": 2})])
    assert index.query(collection, axis(0), 5, {"section": "Old"}) == []
    assert index.query(collection, axis(0), 5, {"line": 1}) == []
    assert [row_id for row_id, _ in index.query(collection, axis(0), 5, {"line": 2})] == ["a"]
    index.upsert(collection, [VectorRow("a", axis(0), {})])
    assert index.query(collection, axis(0), 5, {"line": 2}) == []
    assert index.count(collection) == 1


def test_fault_d10_scores_are_cosines(index: VectorIndex, collection: str) -> None:
    between = (axis(0) + axis(1)) / np.float32(math.sqrt(2))
    for row_id, vector in {
        "same": axis(0),
        "between": between,
        "across": axis(1),
        "opposite": axis(0, -1.0),
    }.items():
        index.upsert(collection, [VectorRow(row_id, vector, {"root": "r"})])
    hits = index.query(collection, axis(0), 4)
    assert [row_id for row_id, _ in hits] == ["same", "between", "across", "opposite"]
    assert [score for _, score in hits] == pytest.approx([1.0, math.sqrt(0.5), 0.0, -1.0], abs=1e-4)
    assert all(-1.0 <= score <= 1.0 for _, score in hits)


@pytest.mark.parametrize("vector", [np.ones(DIMENSION + 1, np.float32), np.full(DIMENSION, np.nan, np.float32)])
def test_law_a_wrong_vector_is_refused_and_nothing_written(index: VectorIndex, collection: str, vector: Any) -> None:
    with pytest.raises(StoreError):
        index.upsert(collection, [VectorRow("a", axis(0), {}), VectorRow("b", vector, {})])
    assert index.count(collection) == 0


def test_law_an_unknown_collection_is_a_store_error(index: VectorIndex) -> None:
    for call in (
        lambda: index.count("not-there"),
        lambda: list(index.ids("not-there")),
        lambda: index.query("not-there", axis(0), 1),
        lambda: index.upsert("not-there", rows_of(unit_rows(1))),
        lambda: index.delete("not-there", ["a"]),
    ):
        with pytest.raises(StoreError):
            call()


def test_law_threads_may_ask_while_one_writes(index: VectorIndex, collection: str) -> None:
    vectors = unit_rows(600)
    rows = rows_of(vectors)
    index.upsert(collection, rows[:1])
    errors: list[BaseException] = []
    written = threading.Event()

    def ask() -> None:
        try:
            while not written.is_set():
                assert index.query(collection, vectors[0], 1)[0][0] == "id00000"
        except BaseException as error:  # noqa: BLE001 - handed to the test's thread
            errors.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    index.upsert(collection, rows)
    written.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert index.count(collection) == 600


def test_law_close_is_idempotent_and_final(index: VectorIndex, tmp_path: Path) -> None:
    made: VectorIndex = MemoryIndex() if isinstance(index, MemoryIndex) else ChromaIndex(tmp_path / "chroma")
    made.create("one-more", DIMENSION)
    made.close()
    made.close()
    with pytest.raises(StoreError):
        made.collections()
