"""What a kill, a damaged file or a restored backup leaves behind is made whole at the next start."""

from __future__ import annotations

import os
import random
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
    fail,
    forget,
    index_file,
    kill,
    texts_of,
)

from ragd.store.errors import DamagedError, InterruptedCommitError, StoreError
from ragd.store.filling import Pace
from ragd.store.recovery import folder_fingerprint
from ragd.store.store import CACHE_FILE, CATALOG_FILE, Store
from ragd.store.types import Change, IndexFile

SCRIPT: list[Sequence[Change]] = [
    [index_file(["one", "two", "three"]), index_file(["b one", "b two"], b"b.md")],
    [index_file(["one", "two and a half", "three", "four"]), forget(b"b.md")],
    [index_file(["one", "two and a half", "three", "four"], b"moved.md"), forget(), fail(b"bad.md")],
    [index_file(["one", "two and a half"], b"moved.md", title="Other"), index_file(["b one"], b"b.md")],
]


def play(store: Store, embedder: Embedder, done: int = 0) -> int:
    """Commit the rest of the script until it is killed; how much of it is done."""
    store.recover()
    for changes in SCRIPT[done:]:
        try:
            store.commit(changes, embedder)
        except Killed:
            return done
        done += 1
    return done


def golden(folder: Path) -> tuple[object, dict[str, dict[str, object]], int]:
    """Texts, rows of the index and number of steps of an undisturbed run."""
    house = House(folder)
    store = house.open()
    play(store, Embedder())
    steps = len(house.steps)
    assert_consistent(house, store)
    found = texts_of(store), rows_of(house, store), steps
    store.close()
    return found


def assert_only_live_or_pending(house: House, store: Store) -> None:
    """What commit.py promises at every moment."""
    with store.snapshot() as snapshot:
        live = {row[0] for row in snapshot.execute("SELECT id FROM chunk")}
        pending = {row[0] for row in snapshot.execute("SELECT id FROM pending")}
    assert house.index.ids(store.live.collection) <= live | pending
    assert not live & pending


def rows_of(house: House, store: Store) -> dict[str, dict[str, object]]:
    rows = house.index.collections[store.live.collection].rows
    return {key: dict(row.metadata) for key, row in rows.items()}


@pytest.mark.timeout(300)
def test_law_stopped_at_every_step_and_started_again_it_ends_the_same(tmp_path: Path) -> None:
    texts, rows, steps = golden(tmp_path / "golden")
    assert steps >= 40
    for stop in range(steps):
        house = House(tmp_path / str(stop))
        embedder = Embedder()
        house.kill_at = stop
        store = house.open()
        done = 0
        try:
            done = play(store, embedder)
            assert done < len(SCRIPT)
        except Killed:
            assert not store.index_is_ready, "killed before the first commit"
        kill(store)
        house.kill_at = None
        store = house.open()
        assert_only_live_or_pending(house, store)
        assert store.recover() == [], "pending says it all: nothing is found out of step"
        assert_consistent(house, store)
        play(store, embedder, done)
        assert texts_of(store) == texts, stop
        assert rows_of(house, store) == rows, stop
        assert_consistent(house, store)
        assert set(embedder.embedded.values()) == {1}, "no text is embedded twice"
        store.close()
        shutil.rmtree(house.folder)


@pytest.mark.timeout(120)
def test_law_killed_again_and_again_while_recovering_it_ends_the_same(tmp_path: Path) -> None:
    texts, rows, _ = golden(tmp_path / "golden")
    for stop in range(1, 12):
        house = House(tmp_path / str(stop))
        embedder = Embedder()
        store = house.open()
        store.commit(SCRIPT[0], embedder)
        store.commit(SCRIPT[1], embedder)
        collection = house.index.collections[store.live.collection]
        kill(store)
        collection.rows.pop(sorted(collection.rows)[0])
        collection.rows["stranger"] = next(iter(collection.rows.values()))
        for _ in range(2):
            house.kill_at = len(house.steps) + stop
            store = house.open()
            try:
                assert play(store, embedder, 2) < len(SCRIPT)
            except Killed:
                assert not store.index_is_ready, "killed while recovering"
            kill(store)
            house.kill_at = None
        store = house.open()
        play(store, embedder, 1)
        assert texts_of(store) == texts, stop
        assert rows_of(house, store) == rows, stop
        assert_consistent(house, store)
        assert set(embedder.embedded.values()) == {1}
        store.close()


# --- the index and the catalog out of step (F10)


def prepared(house: House, files: int = 12) -> tuple[Embedder, dict[tuple[str, bytes], list[str]]]:
    store, embedder = house.open(), Embedder()
    store.commit([index_file([f"text {n}", f"more {n}"], b"%d.md" % n) for n in range(files)], embedder)
    texts = texts_of(store)
    store.close()
    embedder.embedded.clear()
    return embedder, texts


def test_fault_f10a_a_lost_index_is_written_again_without_embedding(house: House) -> None:
    embedder, texts = prepared(house)
    house.index.collections.clear()
    store = house.open()
    (problem,) = store.recover()
    assert problem == (
        "the vector index lacked 24 rows: 24 were written again from the vector cache, 0 files are indexed again"
    )
    assert store.problems == [problem]
    assert texts_of(store) == texts
    assert_consistent(house, store)
    assert not embedder.embedded
    assert store.recover() == []


def test_fault_f10a_rows_written_again_are_what_a_commit_writes(house: House) -> None:
    prepared(house)
    store = house.open()
    before = rows_of(house, store)
    house.index.collections.clear()
    store.verify(repair=True)
    assert rows_of(house, store) == before


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_fault_f10b_a_lost_catalog_costs_no_embedding(house: House, how: str) -> None:
    embedder, texts = prepared(house)
    for name in house.folder.iterdir():
        if name.name.startswith(CATALOG_FILE):
            name.unlink()
    if how == "empty":
        (house.folder / CATALOG_FILE).touch()
    store = house.open()
    assert any("the catalog was lost" in problem for problem in store.problems)
    changes = [index_file(chunks, path) for (_, path), chunks in texts.items()]
    assert store.commit(changes, embedder).texts_embedded == 0
    assert texts_of(store) == texts
    assert_consistent(house, store)
    assert len(house.index.collections) == 1, "the collection of the lost catalog is not left behind"


def test_fault_f10c_missing_and_strange_rows_are_put_right(house: House) -> None:
    embedder, texts = prepared(house)
    (collection,) = house.index.collections.values()
    gone = random.Random(1).sample(sorted(collection.rows), 10)
    for key in gone:
        collection.rows["stranger " + key] = collection.rows.pop(key)
    store = house.open()
    problems = store.recover()
    assert [problem.split(":")[0] for problem in problems] == [
        "the vector index lacked 10 rows",
        "the vector index had 10 rows of no live chunk; they were deleted",
    ]
    assert texts_of(store) == texts
    assert_consistent(house, store)
    assert not embedder.embedded


def test_fault_f10d_an_older_catalog_or_an_older_index_is_put_right(house: House, tmp_path: Path) -> None:
    prepared(house)
    shutil.copytree(house.folder, tmp_path / "backup")
    older = {key: dict(value.rows) for key, value in house.index.collections.items()}
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["new"], b"0.md"), forget(b"1.md")], embedder)
    newest = texts_of(store)
    store.close()
    for key, rows in older.items():
        house.index.collections[key].rows.clear()
        house.index.collections[key].rows.update(rows)
    store = house.open()
    store.recover()
    assert texts_of(store) == newest
    assert_consistent(house, store)
    store.close()
    for name in (CATALOG_FILE, CACHE_FILE):
        shutil.copyfile(tmp_path / "backup" / name, house.folder / name)
    store = house.open()
    store.recover()
    assert len(texts_of(store)) == 12
    assert_consistent(house, store)


def test_a_vector_that_is_nowhere_marks_its_file_to_be_indexed_again(house: House) -> None:
    _, texts = prepared(house)
    house.index.collections.clear()
    for name in house.folder.iterdir():
        if name.name.startswith(CACHE_FILE):
            name.unlink()
    store, embedder = house.open(), Embedder()
    (problem,) = store.recover()
    assert "lacked 24 rows: 0 were written again from the vector cache, 12 files are indexed again" in problem
    rows = list(store.catalog.plan_rows(store.live.id, ROOT))
    assert {(row.recipe, row.trusted) for row in rows} == {("", 0)}
    assert texts_of(store) == texts, "the words are still found"
    outcome = store.commit([index_file(chunks, path) for (_, path), chunks in texts.items()], embedder)
    assert (outcome.added, outcome.kept, outcome.texts_embedded) == (0, 24, 24)
    assert_consistent(house, store)
    assert {row.recipe for row in store.catalog.plan_rows(store.live.id, ROOT)} == {"recipe-1"}


def test_a_row_whose_new_metadata_did_not_get_written_is_put_right(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one", "two"], title="Old")], embedder)
    house.kill_at = len(house.steps) + 1
    with pytest.raises(Killed):
        store.commit([index_file(["one", "two"], title="New")], embedder)
    kill(store)
    house.kill_at = None
    store = house.open()
    titles = [row["title"] for row in rows_of(house, store).values()]
    assert sorted(titles) == ["New", "Old"]
    store.recover()
    assert [row["title"] for row in rows_of(house, store).values()] == ["Old", "Old"]
    assert_consistent(house, store)


def test_verify_without_repair_changes_nothing(house: House) -> None:
    prepared(house)
    store = house.open()
    store.recover()
    (collection,) = house.index.collections.values()
    collection.rows["stranger"] = collection.rows.pop(min(collection.rows))
    ids = set(collection.rows)
    found = store.verify()[store.live.id]
    assert (found.missing, found.extra, found.ok) == (1, 1, False)
    assert set(collection.rows) == ids
    found = store.verify(repair=True)[store.live.id]
    assert (found.missing, found.rewritten, found.extra) == (1, 1, 1)
    assert store.verify()[store.live.id].ok
    assert_consistent(house, store)


def test_collections_of_others_are_left_alone_on_a_shared_server(house: House) -> None:
    prepared(house)
    store = house.open(index_is_private=False)
    index = store.index
    index.create("ragd-somebody-else-1", DIMENSION)
    index.create(f"ragd-{store.installation}-left-9", DIMENSION)
    store.recover()
    assert index.collections() == sorted(["ragd-somebody-else-1", store.live.collection])


def test_a_comparison_ends_when_asked_to_stop_and_begins_again_later(house: House) -> None:
    _, texts = prepared(house)
    house.index.collections.clear()
    asked = iter([True] * 3)
    house.pace = Pace(batch_tokens=64, stop=lambda: next(asked, False))
    store = house.open()
    assert store.recover() == []
    assert not store.index_is_ready
    assert not store.drain()
    with pytest.raises(InterruptedCommitError):
        store.commit([forget()], None)
    store.close()
    store = house.open()
    assert len(store.recover()) == 1
    assert texts_of(store) == texts
    assert_consistent(house, store)


def test_rows_that_a_query_needs_survive_a_comparison_even_when_no_chunk_is_left(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one"])], embedder)
    with store.snapshot() as snapshot:
        (row,) = snapshot.file_chunks(ROOT, b"a.md")
        store.commit([forget()], embedder)
        store.verify(repair=True)
        assert house.index.ids(store.live.collection) == {row.id}
    assert store.drain()
    assert_consistent(house, store)


# --- damage


def test_fault_d7_a_damaged_index_is_set_aside_once_and_rebuilt_without_embedding(house: House) -> None:
    embedder, texts = prepared(house)
    house.index.is_damaged = True
    store = house.open()
    problems = store.recover()
    assert "the vector index was set aside as index.damaged and built anew: the vector index is damaged" in problems
    assert len(house.index.set_aside) == 1
    assert texts_of(store) == texts
    assert_consistent(house, store)
    assert not embedder.embedded


def test_fault_d7_rows_without_vectors_are_damage_too(house: House) -> None:
    prepared(house)
    house.index.lacks_vectors = True
    store = house.open()
    store.recover()
    assert len(house.index.set_aside) == 1
    assert "vectors are missing" in house.index.set_aside[0]
    assert_consistent(house, store)


def test_fault_d7_an_index_damaged_in_use_is_rebuilt_by_the_next_commit(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one"])], embedder)
    house.index.is_damaged = True
    with pytest.raises(DamagedError):
        store.commit([index_file(["two"])], embedder)
    assert not store.index_is_ready
    store.commit([index_file(["two"])], embedder)
    assert texts_of(store) == {(ROOT, b"a.md"): ["two"]}
    assert_consistent(house, store)
    assert embedder.embedded == {"one": 1, "two": 1}


def test_an_index_that_stays_damaged_is_an_error_not_a_loop(house: House) -> None:
    prepared(house)
    store = house.open()
    index = store.index
    house.index.is_damaged = True
    index.set_aside = lambda reason: house.index.set_aside.append(reason) or Path("x")  # type: ignore[attr-defined]
    with pytest.raises(DamagedError):
        store.recover()
    assert len(house.index.set_aside) == 1
    store.close()


def test_an_index_that_cannot_be_reached_is_not_set_aside(house: House) -> None:
    prepared(house)

    def away(_: str) -> None:
        raise StoreError("the server is away")

    store = house.open()
    house.index.collections.clear()
    house.on_step = away
    with pytest.raises(StoreError, match="away"):
        store.recover()
    assert house.index.set_aside == []
    house.on_step = lambda _: None
    store.recover()
    assert_consistent(house, store)


@pytest.mark.parametrize("damage", ["garbage", "half", "middle", "header"])
def test_a_damaged_catalog_is_set_aside_and_costs_no_embedding(house: House, damage: str) -> None:
    embedder, texts = prepared(house, files=200)
    path = house.folder / CATALOG_FILE
    content = path.read_bytes()
    if damage == "garbage":
        path.write_bytes(b"no catalog" * 10_000)
    elif damage == "half":
        os.truncate(path, len(content) // 2 // 4096 * 4096)
    elif damage == "middle":
        path.write_bytes(content[:20_480] + os.urandom(len(content) // 2) + content[20_480 + len(content) // 2 :])
    else:
        path.write_bytes(b"\xff" * 64 + content[64:])
    damaged = path.read_bytes()
    store = house.open()
    (problem,) = store.problems
    assert "the catalog was damaged" in problem
    (aside,) = house.folder.glob("damaged-catalog-*")
    assert (aside / CATALOG_FILE).read_bytes() == damaged, "set aside, not deleted"
    changes = [index_file(chunks, path) for (_, path), chunks in texts.items()]
    assert store.commit(changes, embedder).texts_embedded == 0
    assert texts_of(store) == texts
    assert_consistent(house, store)
    store.close()
    assert house.open().problems == []


def test_a_first_start_has_no_problems(house: House) -> None:
    store = house.open()
    assert store.recover() == []
    assert store.problems == []


@pytest.mark.parametrize("left", ["nothing", "an empty catalog"])
def test_a_kill_during_the_very_first_start_is_no_damage(house: House, left: str) -> None:
    house.folder.mkdir()
    if left == "an empty catalog":
        (house.folder / CATALOG_FILE).touch()
    store = house.open()
    assert store.problems == []
    store.commit([index_file(["x"])], Embedder())
    assert_consistent(house, store)


def test_the_state_folder_is_for_its_owner_only(house: House) -> None:
    house.folder.mkdir(mode=0o755)
    store = house.open()
    store.commit([index_file(["x"])], Embedder())
    assert house.folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in house.folder.iterdir()} == {0o600}
    store.close()


# --- a clean stop


def index_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / "data").write_text("rows")
    return folder


def test_after_a_clean_stop_a_start_without_changes_opens_no_index(house: House, tmp_path: Path) -> None:
    folder = index_folder(tmp_path)
    store = house.open(index_path=folder)
    store.commit([index_file(["x"])], Embedder())
    store.close()
    opened = house.index.opened
    for _ in range(2):
        store = house.open(index_path=folder)
        assert store.index_is_ready
        assert store.recover() == []
        assert store.drain()
        store.close()
    assert house.index.opened == opened
    store = house.open(index_path=folder)
    house.index.collections.clear()
    assert store.commit([index_file(["y"], b"b.md")], Embedder()).added == 1
    assert len(house.index.ids(store.live.collection)) == 1, "nothing was compared: the stop was clean"
    store.close()


@pytest.mark.parametrize("what", ["killed", "index touched", "index file gone", "index folder gone"])
def test_anything_but_a_clean_stop_is_checked(house: House, tmp_path: Path, what: str) -> None:
    folder = index_folder(tmp_path)
    store = house.open(index_path=folder)
    store.commit([index_file(["x"])], Embedder())
    if what == "killed":
        kill(store)
    else:
        store.close()
    if what == "index touched":
        os.utime(folder / "data", ns=(1, 1))
    elif what == "index file gone":
        (folder / "data").unlink()
    elif what == "index folder gone":
        shutil.rmtree(folder)
    house.index.collections.clear()
    store = house.open(index_path=folder)
    assert not store.index_is_ready
    assert len(store.recover()) == 1
    assert_consistent(house, store)
    store.close()


def test_a_kill_after_a_clean_start_that_used_the_index_is_checked(house: House, tmp_path: Path) -> None:
    folder = index_folder(tmp_path)
    store = house.open(index_path=folder)
    store.commit([index_file(["x"])], Embedder())
    store.close()
    store = house.open(index_path=folder)
    assert store.index.count(store.live.collection) == 1
    kill(store)
    assert not house.open(index_path=folder).index_is_ready


def test_an_error_makes_the_next_start_check(house: House, tmp_path: Path) -> None:
    folder = index_folder(tmp_path)
    store = house.open(index_path=folder)
    store.commit([index_file(["x"])], Embedder())

    def away(name: str) -> None:
        if name == "index row":
            raise StoreError("away")

    house.on_step = away
    with pytest.raises(StoreError):
        store.commit([index_file(["y"])], Embedder())
    house.on_step = lambda _: None
    store.close()
    assert not house.open(index_path=folder).index_is_ready


def test_a_fingerprint_follows_every_file(tmp_path: Path) -> None:
    assert folder_fingerprint(tmp_path / "none") == ""
    folder = index_folder(tmp_path)
    seen = {folder_fingerprint(folder)}
    (folder / "sub").mkdir()
    assert folder_fingerprint(folder) in seen, "folders say nothing"
    (folder / "sub" / "more").write_text("x")
    seen.add(folder_fingerprint(folder))
    (folder / "sub" / "more").write_text("xy")
    seen.add(folder_fingerprint(folder))
    assert len(seen) == 3


def test_close_twice_and_use_after_close(house: House) -> None:
    store = house.open()
    store.commit([index_file(["x"])], Embedder())
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        _ = store.index
    with pytest.raises(StoreError, match="closed"), store.snapshot():
        pass


def test_the_script_covers_every_kind_of_change() -> None:
    kinds = {type(change).__name__ for changes in SCRIPT for change in changes}
    assert kinds == {"IndexFile", "ForgetFile", "FailFile"}
    assert any(isinstance(change, IndexFile) and change.cut.title == "Other" for change in SCRIPT[-1])
