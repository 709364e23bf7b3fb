"""The door to SQLite: private files, migrations, one writer, pinned snapshots, errors a person can act on."""

from __future__ import annotations

import os
import stat
import threading
from itertools import islice
from pathlib import Path

import apsw
import pytest

from ragd.store.errors import DamagedError, StoreError
from ragd.store.sqlite import Database, migrations_of, set_aside

SCHEMA = ["CREATE TABLE t (n INTEGER)"]


@pytest.fixture
def database(tmp_path: Path):
    database = Database(tmp_path / "x.sqlite3", SCHEMA)
    yield database
    database.close()


def numbers(database: Database) -> list[object]:
    with database.read() as link:
        return [row[0] for row in link.execute("SELECT n FROM t ORDER BY n")]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_files_are_for_their_owner_only(tmp_path: Path, umask: int) -> None:
    old = os.umask(umask)
    try:
        database = Database(tmp_path / "x.sqlite3", SCHEMA)
        with database.write() as link:
            link.execute("INSERT INTO t VALUES (1)")
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        assert modes == {"x.sqlite3": 0o600, "x.sqlite3-wal": 0o600, "x.sqlite3-shm": 0o600}
        database.close()
    finally:
        os.umask(old)


def test_an_open_file_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    path.touch()
    path.chmod(0o644)
    Database(path, SCHEMA).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_migrations_run_once_and_in_order(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    Database(path, SCHEMA).close()
    more = [*SCHEMA, "ALTER TABLE t ADD COLUMN m INTEGER DEFAULT 7; INSERT INTO t VALUES (1, 2)"]
    for _ in range(2):
        database = Database(path, more)
        with database.read() as link:
            assert link.execute("SELECT n, m FROM t").fetchall() == [(1, 2)]
        database.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    with pytest.raises(apsw.SQLError):
        Database(path, [*SCHEMA, "CREATE TABLE u (n); NONSENSE"])
    database = Database(path, SCHEMA)
    with database.read() as link:
        assert link.execute("SELECT name FROM sqlite_schema").fetchall() == [("t",)]
    database.close()


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    Database(path, [*SCHEMA, "CREATE TABLE u (n)"]).close()
    with pytest.raises(StoreError, match=r"written by a newer ragd \(schema 2, this one knows 1\)") as caught:
        Database(path, SCHEMA)
    assert not isinstance(caught.value, DamagedError)


def test_every_migration_in_the_package_is_numbered_and_applies(tmp_path: Path) -> None:
    for name in ("catalog", "vectors"):
        assert len(migrations_of(name)) >= 1
        database = Database(tmp_path / f"{name}.sqlite3", migrations_of(name))
        assert database.sound()
        database.close()


def test_a_write_that_raises_leaves_nothing(database: Database) -> None:
    def write_and_fail() -> None:
        with database.write() as link:
            link.execute("INSERT INTO t VALUES (1)")
            raise KeyError

    with pytest.raises(KeyError):
        write_and_fail()
    with database.write() as link:
        link.execute("INSERT INTO t VALUES (2)")
    assert numbers(database) == [2]


def test_synchronous_follows_durable(database: Database) -> None:
    seen = []
    for durable in (True, False, True):
        with database.write(durable=durable) as link:
            seen.append(link.execute("PRAGMA synchronous").fetchall())
    assert seen == [[(2,)], [(1,)], [(2,)]]


def test_a_snapshot_does_not_move(database: Database) -> None:
    with database.read() as link:
        with database.write() as writer:
            writer.execute("INSERT INTO t VALUES (1)")
        assert link.execute("SELECT n FROM t").fetchall() == []
    assert numbers(database) == [1]


def test_a_statement_not_read_to_its_end_spoils_no_later_snapshot(database: Database) -> None:
    with database.write() as link:
        link.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(1000)])
    with database.read() as link:
        unfinished = link.execute("SELECT n FROM t")
        list(islice(unfinished, 3))
    with database.write() as link:
        link.execute("DELETE FROM t")
    assert numbers(database) == []
    del unfinished


def test_readers_cannot_write(database: Database) -> None:
    with pytest.raises(StoreError, match="cannot be written"), database.read() as link:
        link.execute("INSERT INTO t VALUES (1)")


def test_writers_wait_for_each_other_and_readers_for_nobody(database: Database) -> None:
    def add(start: int) -> None:
        for n in range(start, start + 25):
            with database.write(durable=False) as link:
                link.execute("INSERT INTO t VALUES (?)", (n,))
            assert n in numbers(database)

    threads = [threading.Thread(target=add, args=(start,)) for start in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(numbers(database)) == 75


def test_a_full_disk_says_so(database: Database) -> None:
    with database.write() as link:
        link.execute("PRAGMA max_page_count = 4")
    with pytest.raises(StoreError, match="disk is full; free some space"), database.write() as link:
        link.execute("INSERT INTO t VALUES (zeroblob(100000))")
    with database.write() as link:
        link.execute("INSERT INTO t VALUES (1)")
    assert numbers(database) == [1]


def test_a_file_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite3").mkdir()
    with pytest.raises(StoreError, match="cannot be opened"):
        Database(tmp_path / "x.sqlite3", SCHEMA)


def test_what_is_no_database_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    path.write_bytes(b"plain text, long enough to be looked at" * 100)
    with pytest.raises(DamagedError, match=r"x\.sqlite3: damaged .* restart ragd"):
        Database(path, SCHEMA)
    target = set_aside(path, "now")
    assert target.name == "damaged-x-now"
    assert (target / "x.sqlite3").read_bytes().startswith(b"plain text")
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    Database(path, SCHEMA).close()


def test_damage_met_in_use_is_noted_for_the_next_start(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    database = Database(path, SCHEMA)
    with database.write() as link:
        link.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(10_000)])
    database.close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    database = Database(path, SCHEMA)
    assert not database.damage_was_seen
    with pytest.raises(DamagedError):
        numbers(database)
    assert not database.sound()
    database.close()
    database = Database(path, SCHEMA)
    assert database.damage_was_seen
    database.close()


def test_two_are_set_aside_beside_each_other(tmp_path: Path) -> None:
    names = []
    for _ in range(3):
        (tmp_path / "x.sqlite3").touch()
        names.append(set_aside(tmp_path / "x.sqlite3", "now").name)
    assert names == ["damaged-x-now", "damaged-x-now-2", "damaged-x-now-3"]


def test_after_close_nothing_is_read_or_written(tmp_path: Path) -> None:
    database = Database(tmp_path / "x.sqlite3", SCHEMA)
    with database.read() as link:
        database.close()
        database.close()
        assert link.execute("SELECT n FROM t").fetchall() == []
    with pytest.raises(StoreError, match="is closed"), database.read():
        pass
    with pytest.raises(StoreError, match="is closed"), database.write():
        pass
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.sqlite3"]


def test_a_full_text_table_that_changed_under_a_reader_is_sound(tmp_path: Path) -> None:
    """SQLite's check of an FTS5 table believes what a connection remembers from its last search; after writes by
    another one it found damage where there is none, and a damaged vector index was then never set aside."""
    database = Database(
        tmp_path / "x.sqlite3", ["CREATE VIRTUAL TABLE t USING fts5(x, content='', contentless_delete=1)"]
    )
    texts = [" ".join(f"w{number * factor % 997}" for factor in range(1, 40)) for number in range(1, 501)]
    for first in range(0, 2_000, 500):
        with database.write() as link:
            rows = [(first + number, text) for number, text in enumerate(texts, start=1)]
            link.executemany("INSERT INTO t (rowid, x) VALUES (?, ?)", rows)
            link.execute("DELETE FROM t WHERE rowid <= ?", (first * 4 // 5,))
        with database.read() as link, database.scratch() as fresh:
            query = "SELECT rowid FROM t WHERE t MATCH 'w2'"
            assert link.execute(query).fetchall() == fresh.execute(query).fetchall() != []
        with database.write() as link:
            link.execute("INSERT INTO t (t) VALUES ('optimize')")
        assert database.sound()
    database.close()
