"""A store that was damaged while nobody looked: the daemon says what, sets it aside and makes it anew without
embedding anything again."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from garden_kit import Garden
from process_kit import wait_for
from ragd_kit import Ragd
from site_kit import Site
from truth_kit import assert_store_is_true

pytestmark = [pytest.mark.process, pytest.mark.chroma, pytest.mark.timeout(300)]

MOST_STARTS = 4
"""Chroma processes that a start on a damaged folder may cost."""


@dataclass
class Whole:
    """A whole store of more than 1,000 chunks, so that Chroma has written its index files, and its files."""

    ragd: Ragd
    chunks: int
    some: dict[str, str]
    """Path in the root -> a word of that file alone."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    ragd = Ragd(tmp_path_factory.mktemp("whole") / "ragd")
    ragd.configure(chunking={"target_tokens": 40, "max_tokens": 60})
    garden = Garden(ragd.docs, random.Random(5))
    garden.plant(80)
    try:
        ragd.start()
        chunks = ragd.wait_idle()["chunks"]
        assert ragd.daemon.stop() == 0
        assert ragd.segment_files(["data_level0.bin"])
        yield Whole(ragd, chunks, dict(list(garden.marks.items())[:5]))
    finally:
        ragd.clear_away()


def half_of_the_vectors(state: Path) -> None:
    [file] = (state / "chroma").glob("*-*/data_level0.bin")
    with file.open("r+b") as data:
        data.truncate(file.stat().st_size // 2)


def empty_database(state: Path) -> None:
    (state / "chroma" / "chroma.sqlite3").write_bytes(b"")


def half_of_the_database(state: Path) -> None:
    file = state / "chroma" / "chroma.sqlite3"
    with file.open("r+b") as data:
        data.truncate(file.stat().st_size // 2)


def no_index_folder(state: Path) -> None:
    [file] = (state / "chroma").glob("*-*/data_level0.bin")
    shutil.rmtree(file.parent)


def no_id_map(state: Path) -> None:
    [file] = (state / "chroma").glob("*-*/index_metadata.pickle")
    file.write_bytes(b"")


def garbled_id_map(state: Path) -> None:
    [file] = (state / "chroma").glob("*-*/index_metadata.pickle")
    file.write_bytes(b"\0" * file.stat().st_size)


def no_chroma_at_all(state: Path) -> None:
    shutil.rmtree(state / "chroma")


def empty_catalog(state: Path) -> None:
    (state / "catalog.sqlite3").write_bytes(b"")


def garbled_catalog(state: Path) -> None:
    file = state / "catalog.sqlite3"
    data = bytearray(file.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    file.write_bytes(data)


def empty_vector_cache(state: Path) -> None:
    (state / "vectors.sqlite3").write_bytes(b"")


Damage = Callable[[Path], None]
DAMAGES: dict[Damage, tuple[str, str]] = {
    half_of_the_vectors: ("the vector index", "chroma.damaged-*"),
    empty_database: ("the vector index", "chroma.damaged-*"),
    half_of_the_database: ("the vector index", "chroma.damaged-*"),
    no_index_folder: ("the vector index", "chroma.damaged-*"),
    no_id_map: ("the vector index", "chroma.damaged-*"),
    garbled_id_map: ("the vector index", "chroma.damaged-*"),
    no_chroma_at_all: ("the vector index", ""),
    empty_catalog: ("the catalog", "damaged-catalog-*"),
    garbled_catalog: ("the catalog", "damaged-catalog-*"),
    empty_vector_cache: ("", ""),
}
"""What a person is told of, and where the damaged part is put. A lost cache costs nothing while the index is whole."""


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: str(damage.__name__))
def test_fault_d7_a_damaged_store_is_set_aside_and_made_anew(
    whole: Whole, new_ragd: Callable[[], Ragd], tmp_path: Path, damage: Damage
) -> None:
    ragd, site = new_ragd(), Site(tmp_path / "site")
    ragd.docs = whole.ragd.docs
    ragd.env["PYTHONPATH"] = str(site.folder)
    ragd.configure(chunking={"target_tokens": 40, "max_tokens": 60})
    shutil.copytree(whole.ragd.state, ragd.state)
    damage(ragd.state)
    said, aside = DAMAGES[damage]

    ragd.start()
    status = ragd.wait_idle()
    assert status["chunks"] == whole.chunks
    assert any(problem.startswith(said) for problem in status["problems"]) == bool(said), status["problems"]
    wait_for("it is on standard error too", lambda: said in ragd.daemon.said())
    assert bool(aside) == bool(list(ragd.state.glob(aside or "*damaged*"))), sorted(ragd.state.iterdir())
    for rel, mark in whole.some.items():
        hits = ragd.search(mark, "lexical")
        assert {hit["rel"] for hit in hits} == {rel}
        assert rel in [hit["rel"] for hit in ragd.search(hits[0]["text"], "dense")]
    assert site.texts() == 0, "texts were embedded again"
    starts = [line for line in site.started() if "ragd.store.chroma.child" in line]
    assert 1 <= len(starts) <= MOST_STARTS
    assert "Traceback" not in ragd.daemon.said()
    assert ragd.daemon.stop() == 0
    chunks = assert_store_is_true(ragd.config_file, ragd.state, ragd.base / "copy")
    assert chunks == whole.chunks

    # the next start finds nothing to say
    ragd.start()
    assert ragd.wait_idle()["problems"] == []
    assert ragd.daemon.stop() == 0


def test_fault_d7_without_index_and_cache_every_text_is_embedded_once(
    whole: Whole, new_ragd: Callable[[], Ragd], tmp_path: Path
) -> None:
    """The vectors are gone with the index."""
    ragd, site = new_ragd(), Site(tmp_path / "site")
    ragd.docs = whole.ragd.docs
    ragd.env["PYTHONPATH"] = str(site.folder)
    ragd.configure(chunking={"target_tokens": 40, "max_tokens": 60})
    shutil.copytree(whole.ragd.state, ragd.state)
    shutil.rmtree(ragd.chroma)
    (ragd.state / "vectors.sqlite3").write_bytes(b"")
    ragd.start()
    assert ragd.wait_idle()["chunks"] == whole.chunks
    texts = [text for _, batch in site.batches() for text in batch]
    assert len(texts) == len(set(texts)) > 0
    assert ragd.daemon.stop() == 0
    assert assert_store_is_true(ragd.config_file, ragd.state, ragd.base / "copy") == whole.chunks
