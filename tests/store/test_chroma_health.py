"""Damage on disk is recognised before it can crash anything, and the index can be set aside (FAULTS D7)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragd.store.chroma import health
from ragd.store.chroma.client import ChromaIndex
from ragd.store.errors import DamagedError
from ragd.store.types import VectorRow

pytestmark = pytest.mark.chroma

NAME = "generation-1"
DIMENSION = 16
ROWS = 1300  # the index files are first written at 1,000 rows


def rows() -> list[VectorRow]:
    vectors = np.random.default_rng(5).normal(size=(ROWS, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [VectorRow(f"id{number}", vector, {"root": "r"}) for number, vector in enumerate(vectors)]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("healthy") / "chroma"
    index = ChromaIndex(folder)
    index.create(NAME, DIMENSION)
    index.upsert(NAME, rows())
    index.close()
    return folder


@pytest.fixture
def folder(healthy: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(healthy, tmp_path / "chroma"))


def segment(folder: Path) -> Path:
    (only,) = health.segment_folders(folder)
    return only


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def grow_sparse(path: Path) -> None:
    os.truncate(path, 223_934_104_532)


def garbage(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "data_level0.bin cut in half": lambda folder: halve(segment(folder) / "data_level0.bin"),
    "length.bin cut in half": lambda folder: halve(segment(folder) / "length.bin"),
    "header.bin empty": lambda folder: os.truncate(segment(folder) / "header.bin", 0),
    "link_lists.bin grown": lambda folder: grow_sparse(segment(folder) / "link_lists.bin"),
    "id map empty": lambda folder: os.truncate(segment(folder) / "index_metadata.pickle", 0),
    "segment folder emptied of one file": lambda folder: (segment(folder) / "data_level0.bin").unlink(),
    "database empty": lambda folder: os.truncate(folder / health.DATABASE, 0),
    "database cut in half": lambda folder: halve(folder / health.DATABASE),
    "database overwritten": lambda folder: garbage(folder / health.DATABASE),
    "database gone": lambda folder: (folder / health.DATABASE).unlink(),
}
SEEN_BY_THE_CHILD: dict[str, Callable[[Path], Any]] = {
    "segment folder gone": lambda folder: shutil.rmtree(segment(folder)),
    "segment folder empty": lambda folder: [path.unlink() for path in segment(folder).iterdir()],
    "id map overwritten": lambda folder: garbage(segment(folder) / "index_metadata.pickle"),
    "id map cut in half": lambda folder: halve(segment(folder) / "index_metadata.pickle"),
    "a table gone": lambda folder: drop_table(folder / health.DATABASE),
}


def drop_table(database: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(database)) as connection:
        connection.execute("drop table segments")
        connection.commit()


def test_a_healthy_folder_has_no_problems(folder: Path) -> None:
    assert health.folder_problems(folder) == []
    assert health.lost_segments(folder) == []
    index = ChromaIndex(folder)
    assert index.stopped_cleanly
    assert index.check(NAME, ROWS, vectors=True) == []
    index.close()


def test_no_folder_and_an_empty_folder_are_sound(tmp_path: Path) -> None:
    assert health.folder_problems(tmp_path / "none") == []
    assert health.folder_problems(tmp_path) == []
    assert health.stopped_cleanly(tmp_path)


def test_a_file_in_place_of_the_folder_is_damage(tmp_path: Path) -> None:
    (tmp_path / "chroma").write_text("not a folder")
    assert health.folder_problems(tmp_path / "chroma") != []


def test_growth_deletes_and_rewrites_never_look_like_damage(tmp_path: Path) -> None:
    index = ChromaIndex(tmp_path / "chroma")
    index.create(NAME, DIMENSION)
    every = rows()
    for step in (every[:50], every[50:990], every[990:1010], every[1010:]):
        index.upsert(NAME, step)
        assert health.folder_problems(index.folder) == []
    index.delete(NAME, [row.id for row in every[:1100]])
    assert health.folder_problems(index.folder) == []
    index.upsert(NAME, every)
    assert health.folder_problems(index.folder) == []
    assert index.check(NAME, ROWS, vectors=True) == []
    assert index.dead_share(NAME) > 0.3
    index.close()
    assert health.folder_problems(index.folder) == []


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_fault_d7_damage_is_seen_before_anything_is_loaded(folder: Path, damage: Callable[[Path], Any]) -> None:
    damage(folder)
    assert health.folder_problems(folder) != []
    index = ChromaIndex(folder)
    for _ in range(3):
        with pytest.raises(DamagedError, match="damaged"):
            index.count(NAME)
    assert index.pid is None
    assert index.check(NAME) != []
    index.close()


@pytest.mark.parametrize("damage", SEEN_BY_THE_CHILD.values(), ids=SEEN_BY_THE_CHILD.keys())
def test_fault_d7_damage_is_seen_by_the_child_without_endless_retry(
    folder: Path, damage: Callable[[Path], Any]
) -> None:
    damage(folder)
    index = ChromaIndex(folder)
    assert index.check(NAME, ROWS, vectors=True) != []
    for _ in range(3):
        with pytest.raises(DamagedError, match="damaged"):
            index.query(NAME, rows()[0].vector, 3)
    assert index._process.starts <= 2
    index.close()


def test_fault_d7_a_damaged_index_is_set_aside_and_written_anew(folder: Path) -> None:
    halve(segment(folder) / "data_level0.bin")
    index = ChromaIndex(folder, now=lambda: 0.0)
    with pytest.raises(DamagedError):
        index.count(NAME)
    aside = index.set_aside("data_level0.bin is torn")
    assert aside.name == "chroma.damaged-19700101T000000Z"
    assert (aside / "set-aside.txt").read_text() == "data_level0.bin is torn\n"
    assert (aside / health.DATABASE).exists()
    assert index.collections() == []
    index.create(NAME, DIMENSION)
    index.upsert(NAME, rows())
    assert index.check(NAME, ROWS, vectors=True) == []
    index.close()


def test_set_aside_stops_a_running_child_and_keeps_few_old_ones(tmp_path: Path) -> None:
    index = ChromaIndex(tmp_path / "chroma", now=lambda: 0.0)
    asides = []
    for _ in range(3):
        index.create(NAME, DIMENSION)
        asides.append(index.set_aside("because"))
        assert index.pid is None
    assert len(set(asides)) == 3
    assert [path.exists() for path in asides] == [False, True, True]
    index.close()


def test_check_reports_a_missing_collection_and_a_wrong_count(folder: Path) -> None:
    index = ChromaIndex(folder)
    assert index.check("not-there") == ["collection not-there is missing"]
    assert index.check(NAME, ROWS + 1) == [f"collection {NAME} has {ROWS} rows, not {ROWS + 1}"]
    index.close()


def test_a_hot_journal_is_not_damage(folder: Path) -> None:
    """A killed writer leaves its journal; the next opener finishes it."""
    (folder / (health.DATABASE + "-journal")).write_bytes(b"\x00" * 512)
    assert health.folder_problems(folder) == []


def test_the_clean_stop_is_known_and_forgotten_at_the_next_opening(folder: Path) -> None:
    assert health.stopped_cleanly(folder)
    index = ChromaIndex(folder)
    index.count(NAME)
    assert not health.stopped_cleanly(folder)
    index.close()
    assert health.stopped_cleanly(folder)
