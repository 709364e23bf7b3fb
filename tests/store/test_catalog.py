"""What the catalog tells the plan, the status and people; and what a snapshot shows."""

from __future__ import annotations

import time

import pytest
from store_kit import ROOT, Embedder, House, fail, forget, index_file, stat

from ragd.store.catalog import Tally
from ragd.store.rows import stat_key
from ragd.store.types import FileStat


def fill(store, count: int, root: str = ROOT) -> None:
    """Many files, straight into the table."""
    with store.catalog.database.write() as link:
        link.executemany(
            "INSERT INTO file (generation, root, path, size, mtime_ns, ctime_ns, inode, device, trusted,"
            " content_hash, state, recipe, chunk_count) VALUES (?, ?, ?, 1, 2, 3, 4, 5, 1, x'00', 'indexed', 'r', 2)",
            [(store.live.id, root, b"d%d/f%d.md" % (n % 100, n)) for n in range(count)],
        )


def test_plan_rows_come_in_the_order_of_their_bytes(house: House) -> None:
    store = house.open()
    paths = [b"b", b"a/z", b"a", b"a.md", b"a/b/c", b"a0", b"\xff", b"a/\xff", b"a-"]
    store.commit([index_file(["x"], path) for path in paths], Embedder())
    store.commit([index_file(["x"], b"a/other", root="other")], Embedder())
    rows = list(store.catalog.plan_rows(store.live.id, ROOT))
    assert [row.path for row in rows] == sorted(paths)
    assert rows[0][1:6] == stat_key(stat(1))
    assert (rows[0].trusted, rows[0].state, rows[0].recipe, rows[0].reason) == (1, "indexed", "recipe-1", "")
    under = [row.path for row in store.catalog.plan_rows(store.live.id, ROOT, b"a")]
    assert under == [b"a", b"a/b/c", b"a/z", b"a/\xff"]
    assert [row.path for row in store.catalog.plan_rows(store.live.id, ROOT, b"a/b/c")] == [b"a/b/c"]
    assert list(store.catalog.plan_rows(store.live.id, ROOT, b"none")) == []


def test_stat_keys_compare_with_plan_rows_for_any_stat(house: House) -> None:
    store = house.open()
    seen = FileStat(3, 2**65, -7, 2**64 - 2, 1)
    change = index_file(["x"])
    object.__setattr__(change, "stat", seen)
    store.commit([change], Embedder())
    (row,) = store.catalog.plan_rows(store.live.id, ROOT)
    assert row[1:6] == stat_key(seen)


@pytest.mark.timeout(120)
def test_fifty_thousand_plan_rows_take_no_time(house: House) -> None:
    store = house.open()
    fill(store, 50_000)
    best = 10.0
    for _ in range(3):
        began = time.perf_counter()
        rows = {row.path: row for row in store.catalog.plan_rows(store.live.id, ROOT)}
        best = min(best, time.perf_counter() - began)
    assert len(rows) == 50_000
    assert best < 1.0, "0.2 s on a quiet machine"
    began = time.perf_counter()
    assert store.catalog.tallies(store.live.id) == [Tally(ROOT, "indexed", 50_000, 100_000)]
    assert time.perf_counter() - began < 0.1


def test_tallies_follow_every_change(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["x", "y"]), index_file([], b"b", skipped="binary"), fail(b"c")], embedder)
    store.commit([index_file(["x"], b"d", root="other")], embedder)
    assert store.catalog.tallies(store.live.id) == [
        Tally(ROOT, "failed", 1, 0),
        Tally(ROOT, "indexed", 1, 2),
        Tally(ROOT, "skipped", 1, 0),
        Tally("other", "indexed", 1, 1),
    ]
    store.commit([fail(), forget(b"b"), forget(b"c"), forget(b"d", "other")], embedder)
    assert store.catalog.tallies(store.live.id) == [Tally(ROOT, "failed", 1, 2)]
    assert store.catalog.roots(store.live.id) == [ROOT]


def test_failures_are_paged(house: House) -> None:
    store = house.open()
    store.commit([fail(b"%d" % n) for n in range(7)], None)
    store.commit([index_file([], b"skip", skipped="binary")], Embedder())
    seen, after = [], None
    while page := store.catalog.failures(store.live.id, limit=3, after=after):
        seen += [row.path for row in page]
        after = (page[-1].root, page[-1].path)
    assert seen == [b"%d" % n for n in range(7)]
    assert [row.reason for row in store.catalog.files_in_state(store.live.id, "skipped")] == ["binary"]


def test_retries_are_due_when_their_pause_has_passed(house: House) -> None:
    store = house.open()
    assert store.catalog.next_retry_ns(store.live.id) is None
    store.commit([fail(b"late", retry=300), fail(b"soon", retry=100), fail(b"never"), fail(b"mid", retry=200)], None)
    assert [row.path for row in store.catalog.retry_due(store.live.id, 250)] == [b"soon", b"mid"]
    assert store.catalog.next_retry_ns(store.live.id) == 100
    store.commit([index_file(["x"], b"soon")], Embedder())
    assert store.catalog.next_retry_ns(store.live.id) == 200


def test_files_are_found_by_their_content(house: House) -> None:
    store = house.open()
    store.commit([index_file(["same"], b"a"), index_file(["same"], b"b"), index_file(["other"], b"c")], Embedder())
    content = index_file(["same"]).content_hash
    assert {row.path for row in store.catalog.by_content(store.live.id, content)} == {b"a", b"b"}
    assert len(store.catalog.by_content(store.live.id, content, limit=1)) == 1
    assert store.catalog.by_content(store.live.id, b"none") == []


def test_the_lists_go_along_an_index(house: House) -> None:
    """Nothing that is asked for often reads the whole table."""
    store = house.open()
    asked = [
        "SELECT * FROM file WHERE generation = 1 AND root = 'r' AND path >= x'00' ORDER BY path LIMIT 5",
        "SELECT * FROM file WHERE generation = 1 AND content_hash = x'00' LIMIT 5",
        "SELECT * FROM file WHERE generation = 1 AND retry_at_ns <= 5 ORDER BY retry_at_ns LIMIT 5",
        "SELECT * FROM file WHERE generation = 1 AND state = 'failed' AND state <> 'indexed' AND id > 5"
        " ORDER BY id LIMIT 5",
        "SELECT * FROM chunk WHERE file_id = 1 ORDER BY ordinal",
        "SELECT DISTINCT text_hash FROM chunk WHERE text_hash IN (x'00', x'01')",
        "SELECT id FROM chunk WHERE id > '' AND generation = 1 AND vector = 0 ORDER BY id LIMIT 5",
        "SELECT id FROM chunk WHERE id > '' AND generation = 1 ORDER BY id LIMIT 5",
    ]
    with store.snapshot() as snapshot:
        for sql in asked:
            plan = [str(row[3]) for row in snapshot.execute("EXPLAIN QUERY PLAN " + sql)]
            assert all("SEARCH" in line and "INDEX" in line for line in plan), (sql, plan)


def test_meta_keys_are_kept_and_removed(house: House) -> None:
    store = house.open()
    assert store.catalog.meta("k") is None
    store.catalog.set_meta("k", "v")
    store.close()
    store = house.open()
    assert store.catalog.meta("k") == "v"
    store.catalog.set_meta("k", None)
    assert store.catalog.meta("k") is None


def test_a_snapshot_shows_one_moment(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one", "two"])], embedder)
    with store.snapshot() as snapshot:
        ids = [row.id for row in snapshot.file_chunks(ROOT, b"a.md")]
        store.commit([index_file(["three"])], embedder)
        assert {row.text for row in snapshot.chunks([*ids, "unknown"]).values()} == {"one", "two"}
        file = snapshot.file(ROOT, b"a.md")
        assert file is not None
        assert file.chunk_count == 2
    with store.snapshot() as snapshot:
        assert snapshot.chunks(ids) == {}
        (row,) = snapshot.file_chunks(ROOT, b"a.md")
        assert snapshot.chunks_by_rowid([row.rowid, 10**6]) == {row.rowid: row}
        assert (row.root, row.path, row.type, row.title, row.mtime_ns) == (ROOT, b"a.md", "markdown", "A", 5)
        assert (row.section, row.spans, row.stale, row.tags) == (("Top",), ((0, 5),), False, ())


def test_a_lexical_table_finds_words_whatever_their_accents(house: House) -> None:
    store = house.open()
    store.commit([index_file(["Crème brûlée"], title="Desserts", section=("Süßes",))], Embedder())
    table = f"lexical_{store.live.id}"
    with store.snapshot() as snapshot:
        for word in ("creme", "BRULEE", "desserts", "süßes"):
            assert len(list(snapshot.execute(f"SELECT rowid FROM {table} WHERE {table} MATCH ?", (word,)))) == 1


def test_another_tokenizer_rebuilds_the_lexical_table_from_stored_texts(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one", "two"]), index_file(["three"], b"b")], embedder)
    with store.catalog.database.write() as link:
        link.execute("UPDATE generation SET lexical = 'old'")
        link.execute(f"DELETE FROM lexical_{store.live.id}")
    store.close()
    store = house.open()
    table = f"lexical_{store.live.id}"
    with store.snapshot() as snapshot:
        assert len(list(snapshot.execute(f"SELECT rowid FROM {table} WHERE {table} MATCH 'two OR three'"))) == 2
        assert list(snapshot.execute("SELECT DISTINCT lexical <> 'old' FROM generation")) == [(1,)]
