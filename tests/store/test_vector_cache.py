"""The vector cache: vectors by model and text, never fatal, pruned with patience."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import numpy as np
import pytest
from store_kit import DIMENSION, Embedder, House, forget, index_file

from ragd.store.prune import prune
from ragd.store.rows import text_hash
from ragd.store.vector_cache import VectorCache

NAMES = ["a", "b", "c"]
HASHES = [text_hash(name) for name in NAMES]
VECTORS = Embedder().embed_documents(NAMES)


def open_cache(folder: Path) -> VectorCache:
    return VectorCache(folder / "vectors.sqlite3", lambda: "20240101T000000Z")


def test_vectors_come_back_as_they_were(tmp_path: Path) -> None:
    cache = open_cache(tmp_path)
    vectors = cache.of("m", DIMENSION)
    vectors.put_many(HASHES, VECTORS)
    found = vectors.get_many([*HASHES, b"unknown", HASHES[0]])
    assert set(found) == set(HASHES)
    for key, vector in zip(HASHES, VECTORS, strict=True):
        np.testing.assert_array_equal(found[key], vector)
    keys, matrix = vectors.matrix(HASHES)
    assert (matrix.shape, matrix.dtype) == ((3, DIMENSION), np.float32)
    np.testing.assert_array_equal(matrix, np.stack([found[key] for key in keys]))
    assert vectors.matrix([])[1].shape == (0, DIMENSION)
    assert vectors.missing([b"unknown", *HASHES]) == {b"unknown"}
    cache.close()


def test_models_are_kept_apart(tmp_path: Path) -> None:
    cache = open_cache(tmp_path)
    cache.of("m", DIMENSION).put_many(HASHES, VECTORS)
    assert cache.of("n", DIMENSION).get_many(HASHES) == {}
    assert cache.of("m", DIMENSION + 1).get_many(HASHES) == {}
    cache.of("n", DIMENSION).put_many(HASHES, -VECTORS)
    np.testing.assert_array_equal(cache.of("m", DIMENSION).get_many(HASHES)[HASHES[0]], VECTORS[0])
    assert cache.count() == 6
    cache.close()


def test_many_vectors_go_through_in_blocks(tmp_path: Path) -> None:
    cache = open_cache(tmp_path)
    vectors = cache.of("m", DIMENSION)
    names = [f"text {n}" for n in range(1300)]
    vectors.put_many([text_hash(name) for name in names], Embedder().embed_documents(names))
    blocks = list(vectors.blocks([text_hash(name) for name in names], size=600))
    assert [len(keys) for keys, _ in blocks] == [600, 600, 100]
    cache.close()


def test_a_vector_that_cannot_be_one_counts_as_missing(tmp_path: Path) -> None:
    cache = open_cache(tmp_path)
    vectors = cache.of("m", DIMENSION)
    vectors.put_many(HASHES, VECTORS)
    cache.close()
    with apsw.Connection(str(tmp_path / "vectors.sqlite3")) as link:
        link.execute("UPDATE vector SET vector = zeroblob(32) WHERE text_hash = ?", (HASHES[0],))
        link.execute("UPDATE vector SET vector = x'00' WHERE text_hash = ?", (HASHES[1],))
    link.close()
    cache = open_cache(tmp_path)
    assert set(cache.of("m", DIMENSION).get_many(HASHES)) == {HASHES[2]}
    cache.of("m", DIMENSION).put_many(HASHES, VECTORS)
    assert cache.of("m", DIMENSION).missing(HASHES) == set()
    cache.close()


@pytest.mark.parametrize("damage", ["garbage", "half", "no header"])
def test_a_damaged_file_is_set_aside_and_started_anew(tmp_path: Path, damage: str) -> None:
    cache = open_cache(tmp_path)
    names = [f"text {n}" for n in range(2000)]
    cache.of("m", DIMENSION).put_many([text_hash(name) for name in names], Embedder().embed_documents(names))
    cache.close()
    path = tmp_path / "vectors.sqlite3"
    size = path.stat().st_size
    if damage == "garbage":
        path.write_bytes(b"not a database at all" * 1000)
    elif damage == "half":
        os.truncate(path, size // 2)
    else:
        path.write_bytes(b"\xff" * 100 + path.read_bytes()[100:])
    cache = open_cache(tmp_path)
    vectors = cache.of("m", DIMENSION)
    vectors.put_many(HASHES, VECTORS)
    assert vectors.missing(HASHES) == set()
    assert vectors.missing([text_hash(name) for name in names])
    assert (tmp_path / "damaged-vectors-20240101T000000Z" / "vectors.sqlite3").exists()
    assert len(cache.problems) == 1
    assert "set aside" in cache.problems[0]
    cache.close()


def test_damage_met_while_reading_starts_anew_too(tmp_path: Path) -> None:
    cache = open_cache(tmp_path)
    names = [f"text {n}" for n in range(2000)]
    hashes = [text_hash(name) for name in names]
    cache.of("m", DIMENSION).put_many(hashes, Embedder().embed_documents(names))
    cache.close()
    path = tmp_path / "vectors.sqlite3"
    content = path.read_bytes()
    path.write_bytes(content[:8192] + b"\xa5" * (len(content) - 8192))
    cache = open_cache(tmp_path)
    vectors = cache.of("m", DIMENSION)
    assert vectors.missing(hashes) == set(hashes)
    assert len(cache.problems) == 1
    vectors.put_many(HASHES, VECTORS)
    assert vectors.missing(HASHES) == set()
    cache.close()


def test_a_damaged_cache_costs_a_commit_nothing_but_embedding_again(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one", "two"])], embedder)
    store.close()
    (house.folder / "vectors.sqlite3").write_bytes(b"broken")
    store = house.open()
    assert len(store.problems) == 1
    assert store.commit([index_file(["one", "three"])], embedder).texts_embedded == 1
    store.close()


def vectors_left(store) -> int:
    return store.cache.count()


def test_unused_vectors_stay_for_a_while(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one", "two"]), index_file(["two", "three"], b"b.md")], embedder)
    store.commit([forget()], embedder)
    database = store.catalog.database
    assert prune(store.cache, database, now_s=100, max_age_s=50, max_share=1.0) == 0
    assert prune(store.cache, database, now_s=149, max_age_s=50, max_share=1.0) == 0
    assert prune(store.cache, database, now_s=150, max_age_s=50, max_share=1.0) == 1
    assert vectors_left(store) == 2


def test_a_text_that_comes_back_starts_its_time_again(house: House) -> None:
    store, embedder = house.open(), Embedder()
    database = store.catalog.database
    store.commit([index_file(["one", "two"])], embedder)
    store.commit([index_file(["two"])], embedder)
    prune(store.cache, database, now_s=100, max_age_s=50, max_share=1.0)
    assert store.commit([index_file(["one", "two"])], embedder).texts_embedded == 0
    assert prune(store.cache, database, now_s=200, max_age_s=50, max_share=1.0) == 0
    store.commit([index_file(["two"])], embedder)
    assert prune(store.cache, database, now_s=300, max_age_s=50, max_share=1.0) == 0
    assert prune(store.cache, database, now_s=350, max_age_s=50, max_share=1.0) == 1


def test_unused_vectors_are_at_most_a_share_the_oldest_go_first(house: House) -> None:
    store, embedder = house.open(), Embedder()
    database = store.catalog.database
    store.commit([index_file([f"{n}" for n in range(10)])], embedder)
    store.commit([index_file([f"{n}" for n in range(1, 10)])], embedder)
    prune(store.cache, database, now_s=10, max_age_s=1000, max_share=1.0)
    store.commit([index_file([f"{n}" for n in range(6, 10)])], embedder)
    assert prune(store.cache, database, now_s=20, max_age_s=1000, max_share=0.5) == 2
    assert vectors_left(store) == 8
    vectors = store.cache.of(store.live.identity, DIMENSION)
    assert vectors.missing([text_hash("0"), text_hash("9")]) == {text_hash("0")}


def test_age_zero_erases_all_that_is_unused_at_once(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file([f"{n}" for n in range(1500)])], embedder)
    store.commit([index_file(["0"])], embedder)
    assert prune(store.cache, store.catalog.database, now_s=5, max_age_s=0, max_share=0.0) == 1499
    assert vectors_left(store) == 1
