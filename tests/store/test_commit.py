"""The commit protocol on the memory index: what is written, what is left alone, what a failure leaves behind."""

from __future__ import annotations

import pytest
from store_kit import (
    DIMENSION,
    ROOT,
    Embedder,
    House,
    assert_consistent,
    cut_of,
    fail,
    forget,
    identity,
    index_file,
    stat,
    texts_of,
)

from ragd.store.errors import InterruptedCommitError, StoreError
from ragd.store.filling import Pace
from ragd.store.types import FileStat, TouchFile

A = (ROOT, b"a.md")


def file_of(store, path=b"a.md"):
    row = store.catalog.file_row(store.live.id, ROOT, path)
    assert row is not None
    return row


def test_a_file_is_written_everywhere(house: House) -> None:
    store, embedder = house.open(), Embedder()
    outcome = store.commit([index_file(["one", "two"])], embedder)
    assert (outcome.added, outcome.kept, outcome.removed) == (2, 0, 0)
    assert (outcome.texts_embedded, outcome.tokens_embedded) == (2, 6)
    assert texts_of(store) == {A: ["one", "two"]}
    row = file_of(store)
    assert (row.state, row.chunk_count, row.stale, row.recipe) == ("indexed", 2, False, "recipe-1")
    assert_consistent(house, store)


def test_the_steps_come_in_the_order_of_the_protocol(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one", "two"])], embedder)
    house.steps.clear()
    store.commit([index_file(["two", "three"])], embedder)
    assert house.steps == ["fill batch", "a", "index row", "b block", "c open", "c", "index delete", "d", "e"]


def test_a_group_of_many_files_takes_two_synced_transactions(house: House) -> None:
    store, embedder = house.open(), Embedder()
    house.steps.clear()
    store.commit([index_file([f"text {n}"], f"{n}.md".encode()) for n in range(50)], embedder)
    assert (house.steps.count("a"), house.steps.count("c"), house.steps.count("b block")) == (1, 1, 1)
    assert_consistent(house, store)


def test_a_kept_id_is_left_alone_in_the_index_and_moves_in_the_catalog(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one", "two", "three"])], embedder)
    house.index.written.clear()
    outcome = store.commit([index_file(["new at the top", "one", "two", "three"])], embedder)
    assert (outcome.added, outcome.kept, outcome.removed, outcome.texts_embedded) == (1, 3, 0, 1)
    assert len(house.index.written) == 1
    assert not house.index.deleted
    with store.snapshot() as snapshot:
        rows = list(snapshot.file_chunks(*A))
    assert [(row.ordinal, row.start_line, row.text) for row in rows] == [
        (0, 1, "new at the top"), (1, 2, "one"), (2, 3, "two"), (3, 4, "three")
    ]  # fmt: skip
    assert rows[1].spans == ((14, 17),)
    assert_consistent(house, store)


def test_fault_f1_a_file_that_gets_shorter_or_empty_leaves_no_tail(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file([f"zq{n} words" for n in range(1, 6)])], embedder)
    store.commit([index_file(["zq1 words", "zq2 words"])], embedder)
    assert texts_of(store) == {A: ["zq1 words", "zq2 words"]}
    assert_consistent(house, store)
    with store.snapshot() as snapshot:
        sql = f"SELECT rowid FROM lexical_{store.live.id} WHERE lexical_{store.live.id} MATCH 'zq3'"
        assert list(snapshot.execute(sql)) == []
    store.commit([index_file([])], embedder)
    assert texts_of(store) == {A: []}
    assert file_of(store).state == "indexed"
    assert_consistent(house, store)


def test_a_new_recipe_leaves_no_chunk_of_the_old_one(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one two", "three four"])], embedder)
    store.commit([index_file(["one", "two three", "four"])], embedder)
    assert texts_of(store) == {A: ["one", "two three", "four"]}
    assert_consistent(house, store)


def test_a_moved_file_keeps_its_vectors(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file([f"text {n}" for n in range(20)], b"old/a.md")], embedder)
    outcome = store.commit([forget(b"old/a.md"), index_file([f"text {n}" for n in range(20)], b"new/a.md")], embedder)
    assert (outcome.added, outcome.removed, outcome.texts_embedded) == (20, 20, 0)
    assert_consistent(house, store)


def test_a_text_that_stands_in_many_files_is_embedded_once(house: House) -> None:
    store, embedder = house.open(), Embedder()
    outcome = store.commit([index_file(["same", "same", f"own {n}"], b"%d.md" % n) for n in range(5)], embedder)
    assert (outcome.added, outcome.texts_embedded) == (15, 6)
    assert set(embedder.embedded.values()) == {1}
    assert_consistent(house, store)


def test_fault_f14_a_file_larger_than_any_batch_is_written_once(house: House) -> None:
    store, embedder = house.open(), Embedder()
    change = index_file([f"paragraph {n}" for n in range(3 * 500 + 1)])
    assert store.commit([change], embedder).added == 1501
    house.index.written.clear()
    outcome = store.commit([change], embedder)
    assert (outcome.added, outcome.kept, outcome.removed, outcome.texts_embedded) == (0, 1501, 0, 0)
    assert not house.index.written
    assert not house.index.deleted
    assert_consistent(house, store)


def test_fault_f9_a_file_with_a_text_that_fails_stays_as_it_was(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["old"]), index_file(["other"], b"b.md")], embedder)
    embedder.fails = {f"new {n}" for n in range(3, 10)}
    changes = [index_file([f"new {n}" for n in range(10)]), index_file(["other", "more"], b"b.md")]
    outcome = store.commit(changes, embedder)
    assert [(root, path) for root, path, _ in outcome.unembedded] == [A]
    assert "RuntimeError: cannot embed new" in outcome.unembedded[0][2]
    assert texts_of(store) == {A: ["old"], (ROOT, b"b.md"): ["other", "more"]}
    assert_consistent(house, store)
    embedder.fails = set()
    outcome = store.commit(changes, embedder)
    assert (outcome.added, outcome.texts_embedded, outcome.unembedded) == (10, 7, [])
    assert set(embedder.embedded.values()) == {1}
    assert_consistent(house, store)


def test_a_text_without_a_usable_vector_is_reported(house: House) -> None:
    store, embedder = house.open(), Embedder()
    embedder.nan = {"bad"}
    outcome = store.commit([index_file(["good", "bad"]), index_file(["fine"], b"b.md")], embedder)
    assert outcome.unembedded == [(ROOT, b"a.md", "the model gave no usable vector for it")]
    assert texts_of(store) == {(ROOT, b"b.md"): ["fine"]}
    assert_consistent(house, store)


def test_without_a_model_only_what_needs_no_new_vector_is_done(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one"]), index_file(["two"], b"b.md")], embedder)
    outcome = store.commit([index_file(["one"], b"c.md"), index_file(["new"]), forget(b"b.md")], None)
    assert outcome.unembedded == [(ROOT, b"a.md", "the embedding model is not loaded")]
    assert texts_of(store) == {A: ["one"], (ROOT, b"c.md"): ["one"]}
    assert_consistent(house, store)


def test_a_failed_file_keeps_its_last_good_chunks_marked_stale(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["good"])], embedder)
    store.commit([fail(retry=99), fail(b"new.md", reason="timeout")], embedder)
    row = file_of(store)
    assert (row.state, row.reason, row.detail, row.stale) == ("failed", "parse_error", "it is broken", True)
    assert (row.attempts, row.retry_at_ns, row.chunk_count) == (1, 99, 1)
    assert (file_of(store, b"new.md").stale, file_of(store, b"new.md").chunk_count) == (False, 0)
    with store.snapshot() as snapshot:
        assert [chunk.stale for chunk in snapshot.file_chunks(*A)] == [True]
    store.commit([fail(retry=500)], embedder)
    assert (file_of(store).attempts, file_of(store).retry_at_ns) == (2, 500)
    assert_consistent(house, store)
    store.commit([index_file(["good", "again"])], embedder)
    row = file_of(store)
    assert (row.state, row.reason, row.stale, row.attempts, row.retry_at_ns) == (
        "indexed",
        "",
        False,
        0,
        None,
    )
    assert_consistent(house, store)


def test_a_skipped_file_loses_its_chunks(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["text"])], embedder)
    store.commit([index_file([], skipped="binary")], embedder)
    row = file_of(store)
    assert (row.state, row.reason, row.chunk_count) == ("skipped", "binary", 0)
    assert texts_of(store) == {A: []}
    assert_consistent(house, store)


def test_touch_changes_the_stat_alone_and_opens_no_index(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["text"])], embedder)
    house.steps.clear()
    new = FileStat(1, 99, 98, 7, 1)
    store.commit([TouchFile(ROOT, b"a.md", new, False), TouchFile(ROOT, b"none.md", new, True)], None)
    assert (file_of(store).stat, file_of(store).trusted, file_of(store).chunk_count) == (new, False, 1)
    assert house.steps == ["c open", "c"]


def test_a_large_inode_and_a_late_time_come_back_as_they_were(house: House) -> None:
    store = house.open()
    seen = FileStat(1, -5, 2**70, 2**64 - 1, 2**63)
    store.commit([TouchFile(ROOT, b"a.md", seen, True), index_file(["x"])], Embedder())
    store.commit([TouchFile(ROOT, b"a.md", seen, True)], None)
    assert file_of(store).stat == FileStat(1, -5, 2**63 - 1, 2**64 - 1, 2**63)


def test_of_two_changes_of_one_file_the_later_wins(house: House) -> None:
    store, embedder = house.open(), Embedder()
    outcome = store.commit(
        [index_file(["one"]), index_file(["b"], b"b.md"), index_file(["two"]), forget(b"b.md")], embedder
    )
    assert (outcome.added, outcome.removed) == (3, 2)
    assert texts_of(store) == {A: ["two"]}
    assert_consistent(house, store)


def test_the_metadata_of_a_row_is_strings_that_chroma_takes(house: House) -> None:
    store, embedder = house.open(), Embedder()
    path = b"d\xff/\xc3\xa9.md"
    store.commit([index_file(["text"], path, title="T\ud800" + "x" * 5000, section=("A > B", "C\udfff"))], embedder)
    (row,) = house.index.collections[store.live.collection].rows.values()
    assert row.metadata == {
        "root": ROOT,
        "path": "d\\xff/é.md",
        "type": "markdown",
        "kind": "text",
        "title": "T\ufffd\ufffd\ufffd" + "x" * 1996,
        "section": "A > B > C\ufffd\ufffd\ufffd",
    }
    assert row.document is None
    assert_consistent(house, store)


def test_documents_go_into_the_index_only_when_configured(house: House) -> None:
    store = house.open(documents=True)
    store.commit([index_file(["text"], prefix="A > Top\n")], Embedder())
    (row,) = house.index.collections[store.live.collection].rows.values()
    assert row.document == "A > Top\ntext"


def test_fault_d5_a_row_whose_title_or_section_changed_is_replaced_whole(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one", "two"], title="Old", section=("Old",))], embedder)
    outcome = store.commit([index_file(["one", "two"], title="New", section=())], embedder)
    assert (outcome.added, outcome.kept, outcome.texts_embedded) == (0, 2, 0)
    rows = house.index.collections[store.live.collection].rows.values()
    assert {(row.metadata["title"], row.metadata["section"]) for row in rows} == {("New", "")}
    with store.snapshot() as snapshot:
        table = f"lexical_{store.live.id}"
        found = [
            len(list(snapshot.execute(f"SELECT rowid FROM {table} WHERE {table} MATCH ?", (word,))))
            for word in ("old", "new", "one")
        ]
    assert found == [0, 2, 1]
    assert_consistent(house, store)


def test_fault_d4_metadata_of_any_shape_is_kept_as_json(house: House) -> None:
    store, embedder = house.open(), Embedder()
    metadata = {
        "author": None,
        "tags": [],
        "owner": {"name": "x"},
        "n": float("nan"),
        "day": object,
        1: [(2,)],
    }
    store.commit([index_file(["text"], metadata=metadata), index_file(["none"], b"b.md")], embedder)
    with store.snapshot() as snapshot:
        found = snapshot.execute("SELECT path, metadata ->> '$.owner.name', metadata ->> '$.n' FROM file")
        assert set(found) == {(b"a.md", "x", "nan"), (b"b.md", None, None)}
    assert_consistent(house, store)


def test_tags_come_from_a_list_or_from_words_between_commas(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit(
        [
            index_file(["text"], metadata={"tags": ["#a", "b c", 3, "a", None], "tag": "d"}),
            index_file(["text"], b"b.md", metadata={"tags": "x, #y ,,z"}),
        ],
        embedder,
    )
    with store.snapshot() as snapshot:
        assert [row.tags for row in snapshot.file_chunks(*A)] == [("a", "b c", "3", "d")]
        assert [row.tags for row in snapshot.file_chunks(ROOT, b"b.md")] == [("x", "y", "z")]


def test_a_blank_text_needs_no_vector_and_no_row(house: House) -> None:
    store, embedder = house.open(), Embedder()
    embedder.nan = {" \n"}
    outcome = store.commit([index_file(["text", " \n"])], embedder)
    assert (outcome.added, outcome.texts_embedded, outcome.unembedded) == (2, 1, [])
    assert texts_of(store) == {A: ["text", " \n"]}
    assert_consistent(house, store)
    assert store.verify()[store.live.id].ok
    store.commit([forget()], embedder)
    assert_consistent(house, store)


@pytest.mark.parametrize("texts", [["fine", "bad \ud800 text"], ["twice"]])
def test_a_cut_that_cannot_be_stored_stops_no_other_file(house: House, texts: list[str]) -> None:
    store, embedder = house.open(), Embedder()
    change = index_file(texts)
    if texts == ["twice"]:
        object.__setattr__(change.cut, "chunks", change.cut.chunks * 2)
    outcome = store.commit([change, index_file(["good"], b"b.md")], embedder)
    assert [(root, path) for root, path, _ in outcome.unembedded] == [A]
    assert texts_of(store) == {(ROOT, b"b.md"): ["good"]}
    assert_consistent(house, store)


def test_a_rendered_body_and_odd_newlines_come_back(house: House) -> None:
    store = house.open()
    change = index_file(["a\r\nb", "a,b\n"])
    first, second = change.cut.chunks
    object.__setattr__(first, "embedded_text", "a\nb")
    object.__setattr__(second, "embedded_text", "column: a\ncolumn: b")
    store.commit([change], Embedder())
    with store.snapshot() as snapshot:
        rows = list(snapshot.file_chunks(*A))
    assert [(row.text, row.rendered, row.embedded_text) for row in rows] == [
        ("a\r\nb", None, "a\nb"),
        ("a,b\n", "column: a\ncolumn: b", "column: a\ncolumn: b"),
    ]


def test_a_canonical_text_parents_and_dropped_regions_follow_the_cut(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["a", "b"], canonical_text="ab\ud800")], embedder)
    with store.snapshot() as snapshot:
        (row, _) = snapshot.file_chunks(*A)
        assert snapshot.canonical_text(row.file_id) == "ab\ufffd\ufffd\ufffd"
        assert list(snapshot.execute("SELECT id, section, stop FROM parent")) == [("p0", '["Top"]', 2)]
        assert list(snapshot.execute("SELECT reason FROM dropped")) == [("markup",)]
    store.commit([index_file(["a"])], embedder)
    with store.snapshot() as snapshot:
        assert snapshot.canonical_text(row.file_id) is None
        assert list(snapshot.execute("SELECT stop FROM parent")) == [(1,)]
    store.commit([forget()], embedder)
    with store.snapshot() as snapshot:
        counts = snapshot.execute(
            "SELECT (SELECT count(*) FROM parent) + (SELECT count(*) FROM dropped) + (SELECT count(*) FROM file)"
        )
        assert list(counts) == [(0,)]


def test_stop_ends_a_commit_before_anything_changed_and_keeps_the_vectors(house: House) -> None:
    asked = iter([False, False, True])
    house.pace = Pace(batch_tokens=3, stop=lambda: next(asked))
    store, embedder = house.open(), Embedder()
    with pytest.raises(InterruptedCommitError):
        store.commit([index_file(["one", "two", "three"])], embedder)
    assert texts_of(store) == {}
    assert_consistent(house, store)
    kept = sum(embedder.embedded.values())
    assert kept == 2
    store.close()
    house.pace = Pace(batch_tokens=3)
    store = house.open()
    assert store.commit([index_file(["one", "two", "three"])], embedder).texts_embedded == 1


def test_an_index_that_fails_leaves_the_files_as_they_were(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["old"])], embedder)

    def fail_once(name: str) -> None:
        if name == "index row":
            house.on_step = lambda _: None
            raise StoreError("the index is away")

    house.on_step = fail_once
    with pytest.raises(StoreError, match="away"):
        store.commit([index_file(["new", "newer"])], embedder)
    assert texts_of(store) == {A: ["old"]}
    assert store.drain()
    assert_consistent(house, store)
    assert store.commit([index_file(["new", "newer"])], embedder).texts_embedded == 0
    assert texts_of(store) == {A: ["new", "newer"]}
    assert_consistent(house, store)


def test_vectors_of_another_model_are_refused(house: House) -> None:
    store = house.open()
    with pytest.raises(ValueError, match="another model"):
        store.commit([index_file(["x"])], Embedder(identity("other", DIMENSION)))


def test_a_root_that_is_no_longer_configured_is_forgotten_in_pieces(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["x", "y"], b"%d.md" % n, "gone") for n in range(5)], embedder)
    store.commit([index_file(["x"])], embedder)
    assert store.catalog.roots(store.live.id) == ["gone", ROOT]
    assert [store.forget_root("gone", limit=2) for _ in range(4)] == [2, 2, 1, 0]
    assert texts_of(store) == {A: ["x"]}
    assert store.catalog.roots(store.live.id) == [ROOT]
    assert_consistent(house, store)


def test_a_renamed_root_embeds_nothing(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["x", "y"], root="old")], embedder)
    outcome = store.commit([index_file(["x", "y"], root="new")], embedder)
    assert outcome.texts_embedded == 0
    assert store.forget_root("old") == 1
    assert_consistent(house, store)


def test_the_cut_in_the_kit_is_a_lawful_one() -> None:
    cut = cut_of(["é", "b"])
    assert [chunk.spans for chunk in cut.chunks] == [((0, 2),), ((2, 3),)]
    assert stat().size == 1
