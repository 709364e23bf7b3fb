"""A changed model: a new generation is filled beside the live one and takes its place in one transaction."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from store_kit import (
    DIMENSION,
    ROOT,
    Embedder,
    House,
    Killed,
    assert_consistent,
    forget,
    identity,
    index_file,
    kill,
    texts_of,
)

from ragd.store.store import CACHE_FILE, CATALOG_FILE, Store
from ragd.store.types import Change, ModelIdentity

A = identity("a")
B = identity("b")
WIDER = identity("a", 12)
FILES = [index_file([f"text {n}", f"more {n}"], b"%02d.md" % n) for n in range(20)]


def prepared(house: House, model: ModelIdentity = A) -> None:
    store = house.open(model)
    store.commit(FILES, Embedder(model))
    store.close()


def drain(store: Store) -> None:
    for _ in range(1000):
        if store.drain():
            return
    raise AssertionError("never done")


def reindex(store: Store, embedder: Embedder, files: Sequence[Change] = FILES) -> None:
    """What the worker does: whatever the target does not have, a few files a time."""
    known = {row.path for row in store.catalog.plan_rows(store.target.id, ROOT)}
    todo = [change for change in files if change.path not in known]
    for start in range(0, len(todo), 6):
        store.commit(todo[start : start + 6], embedder)


def test_the_first_generation_is_live_at_once(house: House) -> None:
    store = house.open(A)
    assert (store.live.identity, store.live.state, store.building) == (A.fingerprint, "live", None)
    assert store.target == store.live


def test_the_same_model_under_another_name_is_no_change(house: House) -> None:
    prepared(house)
    renamed = ModelIdentity("other name", A.fingerprint, A.dimension, A.max_tokens, "", "")
    store = house.open(renamed)
    assert store.building is None
    assert len(texts_of(store)) == 20


@pytest.mark.parametrize("model", [B, WIDER])
def test_fault_e1_e2_a_changed_model_gets_a_generation_of_its_own(house: House, model: ModelIdentity) -> None:
    prepared(house)
    store, embedder = house.open(model), Embedder(model)
    old, building = store.live, store.building
    assert building is not None
    assert (old.identity, building.identity, store.target) == (A.fingerprint, model.fingerprint, building)
    assert building.dimension == model.dimension
    store.commit(FILES[:5], embedder)
    with store.snapshot() as snapshot:
        assert (snapshot.live, snapshot.building) == (old, building)
    assert len(texts_of(store)) == 20, "the live one answers, whole"
    assert [sum(tally.files for tally in store.catalog.tallies(g.id)) for g in (old, building)] == [20, 5]
    reindex(store, embedder)
    assert_consistent(house, store)
    assert store.finish_building()
    assert (store.live.identity, store.building) == (model.fingerprint, None)
    drain(store)
    assert list(house.index.collections) == [store.live.collection], "nothing of the old model is left"
    assert house.index.collections[store.live.collection].dimension == model.dimension
    assert texts_of(store) == {(ROOT, b"%02d.md" % n): [f"text {n}", f"more {n}"] for n in range(20)}
    assert set(embedder.embedded.values()) == {1}
    assert sum(embedder.embedded.values()) == 40
    with store.snapshot() as snapshot:
        assert list(snapshot.execute("SELECT count(*) FROM generation")) == [(1,)]
        assert list(snapshot.execute("SELECT count(*) FROM chunk")) == [(40,)]
        tables = snapshot.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'lexical_%' AND sql LIKE '%fts5%'")
        assert list(tables) == [(f"lexical_{store.live.id}",)]
        assert list(snapshot.execute("SELECT count(DISTINCT generation) FROM tally")) == [(1,)]
    assert_consistent(house, store)


def test_a_file_that_goes_leaves_both_generations(house: House) -> None:
    prepared(house)
    store, embedder = house.open(B), Embedder(B)
    store.commit(FILES[:5], embedder)
    store.commit([forget(b"00.md"), forget(b"19.md")], embedder)
    assert (ROOT, b"00.md") not in texts_of(store)
    assert (ROOT, b"19.md") not in texts_of(store)
    assert (ROOT, b"00.md") not in texts_of(store, store.target.id)
    assert_consistent(house, store)
    assert store.forget_root(ROOT) == 22
    assert texts_of(store) == texts_of(store, store.target.id) == {}
    assert_consistent(house, store)


def test_a_model_that_changes_back_keeps_the_live_generation(house: House) -> None:
    prepared(house)
    store = house.open(B)
    store.commit(FILES[:5], Embedder(B))
    store.close()
    store, embedder = house.open(A), Embedder(A)
    assert (store.live.identity, store.building) == (A.fingerprint, None)
    drain(store)
    assert list(house.index.collections) == [store.live.collection]
    assert store.commit(FILES, embedder).texts_embedded == 0
    assert_consistent(house, store)


def test_a_model_that_changes_again_starts_over_with_the_newest(house: House) -> None:
    prepared(house)
    store = house.open(B)
    store.commit(FILES[:5], Embedder(B))
    store.close()
    store, embedder = house.open(WIDER), Embedder(WIDER)
    assert store.target.identity == WIDER.fingerprint
    reindex(store, embedder)
    assert store.finish_building()
    drain(store)
    assert list(house.index.collections) == [store.live.collection]
    assert_consistent(house, store)


def test_going_back_to_a_model_used_before_embeds_nothing(house: House) -> None:
    prepared(house)
    for model in (B, A):
        store, embedder = house.open(model), Embedder(model)
        reindex(store, embedder)
        assert store.finish_building()
        drain(store)
        assert_consistent(house, store)
        store.close()
    assert not embedder.embedded


def test_a_changed_model_before_anything_was_indexed_needs_no_rebuilding(house: House) -> None:
    house.open(A).close()
    store = house.open(B)
    assert (store.live.identity, store.building) == (B.fingerprint, None)
    drain(store)
    store.commit(FILES, Embedder(B))
    assert list(house.index.collections) == [store.live.collection]
    assert_consistent(house, store)


def test_a_retired_generation_stays_while_a_query_reads_it(house: House) -> None:
    prepared(house)
    store = house.open(B)
    reindex(store, Embedder(B))
    with store.snapshot() as snapshot:
        pinned = snapshot.live
        assert pinned is not None
        assert store.finish_building()
        assert not store.drain()
        found = store.index.query(pinned.collection, Embedder(A).embed_query("text 3")[0], 1)
        assert [row.text for row in snapshot.chunks([key for key, _ in found]).values()] == ["text 3"]
    drain(store)
    assert list(house.index.collections) == [store.live.collection]


def test_a_large_retired_generation_is_removed_in_pieces(house: House) -> None:
    files = [index_file(["x"], b"%04d.md" % n) for n in range(450)]
    store = house.open(A)
    store.commit(files, Embedder(A))
    store.close()
    store = house.open(B)
    store.commit(files, Embedder(B))
    assert store.finish_building()
    assert [store.drain() for _ in range(3)] == [False, False, True]
    assert_consistent(house, store)


def test_a_generation_whose_vectors_were_lost_does_not_go_live(house: House) -> None:
    prepared(house)
    store, embedder = house.open(B), Embedder(B)
    reindex(store, embedder)
    store.close()
    house.index.collections.clear()
    (house.folder / CACHE_FILE).write_bytes(b"broken")
    store = house.open(B)
    store.recover()
    assert not store.finish_building()
    assert store.live.identity == A.fingerprint
    store.commit(FILES, embedder)
    assert store.finish_building()
    drain(store)
    assert_consistent(house, store)


@pytest.mark.timeout(300)
def test_law_a_model_change_killed_at_every_step_ends_the_same(tmp_path: Path) -> None:
    base = House(tmp_path / "base")
    prepared(base)
    old_rows = {name: dict(found.rows) for name, found in base.index.collections.items()}

    def start(folder: Path) -> House:
        house = House(folder)
        house.folder.mkdir()
        for name in (CATALOG_FILE, CACHE_FILE):
            shutil.copyfile(base.folder / name, house.folder / name)
        for name, rows in old_rows.items():
            found = base.index.collections[name]
            house.index.collections[name] = type(found)(found.dimension, dict(rows))
        return house

    def change_model(house: House, embedder: Embedder) -> Store:
        store = house.open(B)
        try:
            reindex(store, embedder, FILES[:8])
            store.commit([forget(row.path) for row in FILES[8:]], embedder)
            assert store.finish_building()
            drain(store)
        except Killed:
            kill(store)
            raise
        return store

    house = start(tmp_path / "golden")
    store = change_model(house, Embedder(B))
    texts, count = texts_of(store), len(house.steps)
    assert_consistent(house, store)
    store.close()
    assert count > 40
    for stop in range(0, count):
        house = start(tmp_path / str(stop))
        embedder = Embedder(B)
        house.kill_at = stop
        with pytest.raises(Killed):
            change_model(house, embedder)
        house.kill_at = None
        store = change_model(house, embedder)
        assert store.live.identity == B.fingerprint
        assert texts_of(store) == texts, stop
        assert_consistent(house, store)
        assert list(house.index.collections) == [store.live.collection], stop
        assert set(embedder.embedded.values()) == {1}
        store.close()
        shutil.rmtree(house.folder)


def test_a_collection_never_holds_vectors_of_two_models(house: House) -> None:
    """Also not when the catalog is lost and the generations are counted from 1 again."""
    prepared(house)
    (house.folder / CATALOG_FILE).unlink()
    store = house.open(B)
    assert store.live.dimension == DIMENSION
    store.commit(FILES, Embedder(B))
    assert list(house.index.collections) == [store.live.collection]
    assert B.fingerprint[:16] in store.live.collection
    assert_consistent(house, store)
