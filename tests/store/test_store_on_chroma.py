"""The store on the real Chroma: clean stops, kills and damage of its folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from store_kit import ROOT, Embedder, House, forget, identity, index_file, texts_of

from ragd.store.chroma.client import ChromaIndex
from ragd.store.recovery import RepairableIndex
from ragd.store.store import Store

pytestmark = [pytest.mark.chroma, pytest.mark.timeout(180)]

FILES = [index_file([f"text {n} of {m}" for n in range(12)], b"%d.md" % m) for m in range(100)]


class ChromaHouse:
    """A state folder with a Chroma folder in it."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.folder = house.folder / "chroma"
        self.opened: list[ChromaIndex] = []

    def open(self) -> Store:
        return Store(
            self.house.folder,
            identity=identity(),
            index_factory=self._index,
            index_path=self.folder,
            pace=self.house.pace,
            clock_ns=self.house.clock,
        )

    def _index(self) -> ChromaIndex:
        index = ChromaIndex(self.folder)
        self.opened.append(index)
        return index

    def kill(self, store: Store) -> None:
        """End the child and forget the store without closing it."""
        for index in self.opened:
            if index.pid is not None:
                os.kill(index.pid, 9)
            index.close()
        store.cache.close()
        store.catalog.database.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed state folder with all files; 1,200 rows make Chroma write its index files. Copy it, leave it."""
    house = ChromaHouse(House(tmp_path_factory.mktemp("filled") / "state"))
    store = house.open()
    store.commit(FILES, Embedder())
    store.close()
    return house.house.folder


@pytest.fixture
def chroma(house: House) -> ChromaHouse:
    return ChromaHouse(house)


def assert_equal(store: Store) -> None:
    with store.snapshot() as snapshot:
        ids = {row[0] for row in snapshot.execute("SELECT id FROM chunk")}
    assert set(store.index.ids(store.live.collection)) == ids
    assert store.index.count(store.live.collection) == len(ids)
    assert store.catalog.pending() == 0
    found = store.index.query(store.live.collection, Embedder().embed_query("text 3 of 7")[0], 1)
    with store.snapshot() as snapshot:
        (row,) = snapshot.chunks([found[0][0]]).values()
    assert row.text == "text 3 of 7"


def test_a_clean_stop_needs_no_chroma_at_the_next_start(chroma: ChromaHouse) -> None:
    store = chroma.open()
    assert isinstance(store.index, RepairableIndex)
    store.commit(FILES[:10], Embedder())
    store.close()
    started = len(chroma.opened)
    store = chroma.open()
    assert store.index_is_ready
    assert store.drain()
    store.close()
    assert len(chroma.opened) == started
    store = chroma.open()
    assert store.commit([index_file(["more"]), forget(b"0.md")], Embedder()).removed == 12
    assert_equal(store)
    store.close()
    store = chroma.open()
    assert store.index_is_ready, "the folder is what it was when Chroma closed it"
    store.close()


@pytest.mark.parametrize("damage", ["killed", "half", "empty database", "segment gone", "folder gone"])
def test_fault_d7_f10_whatever_happened_to_the_folder_nothing_is_embedded_again(
    chroma: ChromaHouse, filled: Path, damage: str
) -> None:
    shutil.copytree(filled, chroma.house.folder)
    embedder = Embedder()
    if damage == "killed":
        store = chroma.open()
        store.recover()
        store.commit([index_file(["one more"], b"more.md")], embedder)
        store.commit([forget(b"more.md")], embedder)
        chroma.kill(store)
    else:
        hurt(chroma.folder, damage)
    embedder.embedded.clear()
    store = chroma.open()
    problems = store.recover()
    assert bool(problems) == (damage != "killed"), problems
    assert texts_of(store) == {(ROOT, change.path): [chunk.text for chunk in change.cut.chunks] for change in FILES}
    assert_equal(store)
    assert store.commit(FILES, embedder).texts_embedded == 0
    assert len(list(chroma.folder.parent.glob("chroma.damaged-*"))) == (
        damage in ("half", "empty database", "segment gone")
    )
    store.close()


def hurt(folder: Path, damage: str) -> None:
    if damage == "half":
        (data,) = folder.glob("*/data_level0.bin")
        os.truncate(data, data.stat().st_size // 2)
    elif damage == "empty database":
        os.truncate(folder / "chroma.sqlite3", 0)
    elif damage == "segment gone":
        (data,) = folder.glob("*/data_level0.bin")
        shutil.rmtree(data.parent)
    else:
        shutil.rmtree(folder)


def test_a_file_of_the_folder_named_in_bytes_that_are_no_utf8_is_found_by_its_metadata(chroma: ChromaHouse) -> None:
    store = chroma.open()
    store.commit([index_file(["text 3 of 7"], b"d\xff.md", title="T\ud800")], Embedder())
    query = Embedder().embed_query("x")[0]
    found = store.index.query(store.live.collection, query, 5, {"root": ROOT, "path": "d\\xff.md"})
    assert len(found) == 1
    assert store.index.query(store.live.collection, query, 5, {"path": "other"}) == []
    assert_equal(store)
    store.close()
