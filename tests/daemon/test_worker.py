"""The worker, tick by tick: from hints to a store that equals the files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_kit import FussyEmbedder, Household

from ragd.daemon.backend import OWNER
from ragd.daemon.ticket import Ticket
from ragd.store.errors import StoreError
from ragd.store.memory_index import MemoryIndex
from ragd.store.rows import text_hash


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Household]:
    household = Household(tmp_path)
    household.open()
    yield household
    household.close()


def test_a_walk_brings_in_what_is_there(home: Household) -> None:
    home.write("a.md", "# A\n\nalpha zqa\n")
    home.write("deep/er/b.txt", "beta zqb\n")
    home.walk()
    home.assert_true()
    assert home.rels("zqa") == {"a.md"}
    assert home.rels("zqb") == {"deep/er/b.txt"}


def test_a_search_without_a_daemon_says_what_it_may_miss(home: Household) -> None:
    home.write("a.md", "alpha zqa\n")
    home.walk()
    params = {"query": "alpha", "mode": "lexical"}
    assert "no daemon is running" in home.running.search(OWNER, params)["notice"]
    home.running.start()
    assert home.running.search(OWNER, params)["notice"] is None


def test_a_hint_waits_for_quiet_and_then_costs_one_pass(home: Household) -> None:
    home.write("a.md", "first zqone\n")
    for _ in range(5):
        home.hint("a.md")
        assert home.running.worker.tick().did == "idle"
        home.clock.now += 0.1
    home.write("a.md", "second zqtwo\n")
    home.hint("a.md")
    assert home.settle().count("committed") == 1
    assert len(home.embedder.embedded) == 1
    assert home.rels("zqtwo") == {"a.md"}


def test_fault_f1_a_shorter_file_leaves_no_old_tail(home: Household) -> None:
    sections = [f"## S{n}\n\n" + f"words zq{n} " * 60 + "\n\n" for n in range(1, 6)]
    home.write("a.md", "".join(sections))
    home.walk()
    before = len(home.indexed_ids())
    home.write("a.md", "".join(sections[:2]))
    home.walk()
    home.assert_true()
    assert len(home.indexed_ids()) < before
    assert home.rels("zq2") == {"a.md"}
    assert not home.rels("zq3") | home.rels("zq5")
    home.write("a.md", "")
    home.walk()
    home.assert_true()
    assert home.indexed_ids() == set()
    assert home.running.why(OWNER, str(home.notes / "a.md"))["state"] == "indexed"


def test_fault_f2_a_file_deleted_while_the_daemon_was_off_is_forgotten(home: Household) -> None:
    home.write("a.md", "alpha zqold\n")
    home.write("b.md", "beta zqb\n")
    home.walk()
    home.close()
    (home.notes / "b.md").unlink()
    home.write("a.md", "alpha zqnew\n")
    home.open()
    home.walk()
    home.assert_true()
    assert not home.rels("zqb") | home.rels("zqold")
    assert home.rels("zqnew") == {"a.md"}


def test_fault_f4_a_restart_embeds_nothing(home: Household) -> None:
    for number in range(100):
        home.write(f"n{number}.md", f"# Note {number}\n\ntext number {number}\n")
    home.walk()
    home.close()
    home.embedder.embedded.clear()
    home.open()
    home.walk()
    home.assert_true()
    assert home.embedder.embedded == []


def test_fault_f6_one_bad_file_stops_no_other_and_rests(tmp_path: Path) -> None:
    home = Household(tmp_path)
    for number in range(50):
        home.write(f"n{number}.md", f"good {number}\n")
    home.embedder.refused = {"poison"}
    home.write("bad.md", "poison zqbad\n")
    home.open()
    try:
        home.walk()
        assert len(home.indexed_ids()) == 50
        listed = home.running.failures(OWNER)["failures"]
        assert [(Path(entry["path"]).name, entry["reason"]) for entry in listed] == [("bad.md", "embed_error")]
        tried = len(home.embedder.embedded)
        assert "committed" not in home.walk()  # its pause is not over
        assert len(home.embedder.embedded) == tried
        home.embedder.refused = set()
        home.clock.now += 3600
        assert home.running.worker.retry_due(home.clock.ns()) == 1
        home.settle()
        home.assert_true()
        assert home.rels("zqbad") == {"bad.md"}
    finally:
        home.close()


def test_fault_f9_a_file_is_in_whole_or_not_at_all(home: Household) -> None:
    paragraphs = [f"## Part {n}\n\n" + f"text zqpart{n} " * 50 for n in range(10)]
    home.embedder.refused = {"zqpart3", "zqpart7"}
    home.write("book.md", "\n\n".join(paragraphs))
    home.walk()
    assert home.indexed_ids() == set()
    assert home.running.status(OWNER)["failed"] == 1
    home.embedder.refused = set()
    already = len(home.embedder.embedded)
    home.clock.now += 3600
    home.running.worker.retry_due(home.clock.ns())
    home.settle()
    home.assert_true()
    assert home.running.status(OWNER)["failed"] == 0
    texts = home.embedder.embedded
    assert len(texts) == len(set(texts)), "no text is embedded twice"
    assert len(texts) > already > 0


def test_fault_f14_a_large_file_is_left_alone_when_nothing_changed(home: Household) -> None:
    home.write("big.md", "\n\n".join(f"## Section {n}\n\n" + f"word{n} " * 90 for n in range(301)))
    home.walk()
    count = len(home.indexed_ids())
    assert count >= 301
    ticket = home.running.sync(OWNER, [])
    assert ticket["files"]["unchanged"] == 1
    assert ticket["chunks"] == {"added": 0, "kept": 0, "removed": 0, "total": count}
    assert ticket["embedded"]["texts"] == 0


def test_a_renamed_folder_costs_no_embedding(home: Household) -> None:
    for number in range(200):
        home.write(f"old/n{number}.md", f"# Note {number}\n\ntext of number {number}\n")
    home.walk()
    home.embedder.embedded.clear()
    os.rename(home.notes / "old", home.notes / "new")
    home.hint("old", deleted=True)
    home.hint("new")
    home.settle()
    home.assert_true()
    assert home.embedder.embedded == []
    assert home.rels("number")
    assert all(rel.startswith("new/") for rel in home.rels("number"))


def test_a_renamed_file_counts_as_moved_and_is_never_away(home: Household) -> None:
    home.write("a.md", "# Title\n\nalpha zqmove\n")
    home.walk()
    os.rename(home.notes / "a.md", home.notes / "b.md")
    answer = home.running.sync(OWNER, [])
    assert answer["files"]["moved"] == 1
    assert answer["files"]["forgotten"] == 0
    assert home.rels("zqmove") == {"b.md"}
    home.assert_true()


def test_a_file_that_went_back_is_not_taken_for_untouched(home: Household) -> None:
    """Saved as B and undone to A while B was on its way: the catalog must end at A."""
    path = home.write("a.md", "version A\n")
    home.walk()
    stat = path.stat()
    path.write_text("version B\n")
    home.hint("a.md")
    home.clock.now += 5
    assert home.running.worker.tick().did == "walked"
    path.write_text("version A\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    home.hint("a.md")
    home.settle()
    home.assert_true()
    path.write_text("version B\n")
    home.hint("a.md")
    home.settle()
    home.assert_true()


def test_a_newer_look_supersedes_an_older_one(home: Household) -> None:
    pipeline = home.running.worker.pipeline
    path = home.write("a.md", "version one\n")
    home.hint("a.md")
    home.clock.now += 5
    worker = home.running.worker
    assert worker.tick().did == "walked"
    pipeline._read_ahead(pipeline._lanes[True])
    path.write_text("version two\n")
    home.hint("a.md")
    home.settle()
    home.assert_true()
    assert home.rels("two") == {"a.md"}
    assert not home.rels("one")
    assert home.embedder.embedded == ["a\nversion two"]


def test_a_file_that_came_back_is_not_forgotten(home: Household) -> None:
    path = home.write("a.md", "alpha zqback\n")
    home.walk()
    path.unlink()
    home.hint("a.md", deleted=True)
    home.clock.now += 5
    assert home.running.worker.tick().did == "walked"
    path.write_text("alpha zqback\n")
    home.settle()
    home.assert_true()
    assert home.rels("zqback") == {"a.md"}


def test_law_a_missing_root_never_means_deleted(home: Household) -> None:
    for number in range(30):
        home.write(f"n{number}.md", f"text {number}\n")
    home.walk()
    ids = home.indexed_ids()
    away = home.folder / "away"
    os.rename(home.notes, away)
    home.embedder.embedded.clear()
    home.walk()
    assert home.indexed_ids() == ids
    root = home.running.status(OWNER)["roots"][0]
    assert root["state"] == "unavailable"
    assert root["problem"]
    assert all(hit["stale"] for hit in home.search("text"))
    os.rename(away, home.notes)
    home.walk()
    home.assert_true()
    assert home.running.status(OWNER)["roots"][0]["state"] == "ok"
    assert home.embedder.embedded == []


def test_law_a_mass_deletion_is_held_until_it_is_confirmed(home: Household) -> None:
    for number in range(30):
        home.write(f"n{number}.md", f"text {number}\n")
    home.walk()
    for number in range(25):
        (home.notes / f"n{number}.md").unlink()
    home.walk()
    assert len(home.indexed_ids()) == 30
    status = home.running.status(OWNER)
    assert status["roots"][0]["state"] == "mass_deletion"
    assert "ragd forget --confirm notes" in status["problems"][0]
    assert home.running.forget(OWNER, {"confirm": "notes"})["forgotten"] == 25
    home.settle()
    home.assert_true()


def test_an_emptied_folder_that_was_replaced_goes_when_a_person_confirms(home: Household) -> None:
    home.write("a.md", "alpha zqa\n")
    home.walk()
    os.rename(home.notes, home.folder / "away")
    home.notes.mkdir()
    home.walk()
    assert home.running.status(OWNER)["roots"][0]["state"] == "unavailable"
    assert home.rels("zqa") == {"a.md"}
    assert home.running.forget(OWNER, {"confirm": "notes"})["forgotten"] == 1
    home.settle()
    home.assert_true()


def test_the_backlog_makes_room_for_what_was_just_saved(home: Household) -> None:
    for number in range(400):
        home.write(f"old{number}.md", f"backlog number {number}\n" * 20)
    home.running.walk_all()
    home.clock.now += 5
    assert home.running.worker.tick().did == "walked"
    home.running.worker.tick()
    home.write("now.md", "just saved zqnow\n")
    home.hint("now.md")
    home.clock.now += 5
    for _ in range(3):
        home.running.worker.tick()
    assert home.rels("zqnow") == {"now.md"}
    assert home.running.worker.pending > 100
    home.settle()
    home.assert_true()


def test_fault_e1_a_changed_model_is_noticed_and_nothing_of_the_old_one_is_left(tmp_path: Path) -> None:
    home = Household(tmp_path, embedder=FussyEmbedder("a", 8))
    for number in range(20):
        home.write(f"n{number}.md", f"note {number} zqmodel\n")
    home.open()
    home.walk()
    old = home.running.store.live
    home.close()
    home.embedder = FussyEmbedder("b", 8)
    home.open()
    try:
        status = home.running.status(OWNER)
        assert status["state"] == "rebuilding"
        assert status["progress"] == "re-embedding 0/20"
        answer = home.running.search(OWNER, {"query": "note zqmodel", "mode": "hybrid"})
        assert answer["mode_used"] == "lexical"
        assert "re-embedding 0 of 20" in answer["notice"]
        assert answer["hits"]
        home.walk()
        live = home.running.store.live
        assert live.id != old.id
        assert len(home.embedder.embedded) == 20
        assert list(home.collections) == [live.collection]
        home.assert_true()
        assert home.running.search(OWNER, {"query": "note", "mode": "dense"})["hits"]
    finally:
        home.close()


def test_fault_e2_a_model_of_another_dimension_needs_no_hand(tmp_path: Path) -> None:
    home = Household(tmp_path, embedder=FussyEmbedder("a", 8))
    home.write("a.md", "alpha zqa\n")
    home.open()
    home.walk()
    home.close()
    home.embedder = FussyEmbedder("a", 12)
    home.open()
    try:
        home.walk()
        home.assert_true()
        assert home.search("alpha", mode="dense")[0]["rel"] == "a.md"
    finally:
        home.close()


def test_a_rebuild_that_was_cut_short_goes_on(tmp_path: Path) -> None:
    home = Household(tmp_path, embedder=FussyEmbedder("a", 8))
    for number in range(300):
        home.write(f"n{number}.md", f"note {number}\n")
    home.open()
    home.walk()
    home.close()
    home.embedder = FussyEmbedder("b", 8)
    home.open()
    home.running.walk_all()
    home.clock.now += 5
    while not home.embedder.embedded:
        home.running.worker.tick()
    first = len(home.embedder.embedded)
    assert 0 < first < 300
    home.close()
    home.open()
    try:
        home.walk()
        home.assert_true()
        assert len(home.embedder.embedded) == 300, "no text is embedded twice"
    finally:
        home.close()


def test_a_root_that_is_no_longer_configured_is_forgotten(home: Household, tmp_path: Path) -> None:
    home.write("a.md", "alpha zqa\n")
    home.walk()
    home.close()
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.md").write_text("beta zqb\n")
    home.extra_config = ""
    config = home.config

    def changed() -> object:
        text = f'[store]\npath = "{home.folder / "state"}"\n[[root]]\nname = "other"\npath = "{other}"\n'
        from ragd.daemon.config import parse_config

        return parse_config(text, None)

    home.config = changed  # type: ignore[method-assign,assignment]
    home.open()
    home.running.walk_all()
    home.settle()
    assert {root["name"] for root in home.running.status(OWNER)["roots"]} == {"other"}
    assert home.rels("zqa") == set()
    assert home.rels("zqb") == {"b.md"}
    assert home.running.store.catalog.roots(home.running.store.live.id) == ["other"]
    home.config = config  # type: ignore[method-assign]


def test_an_index_that_cannot_answer_is_looked_after(home: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write("a.md", "alpha zqa\n")
    home.walk()
    live = home.running.store.live.collection

    def fail(*_: object) -> list[tuple[str, float]]:
        raise StoreError("the child is gone")

    with monkeypatch.context() as patched:
        patched.setattr(MemoryIndex, "query", fail)
        home.collections[live].rows.clear()
        answer = home.running.search(OWNER, {"query": "alpha zqa", "mode": "hybrid"})
    assert answer["mode_used"] == "lexical"
    assert "the child is gone" in answer["notice"]
    assert [hit["rel"] for hit in answer["hits"]] == ["a.md"]
    home.settle()
    home.assert_true()
    assert home.running.search(OWNER, {"query": "alpha", "mode": "dense"})["hits"]


def test_vectors_of_texts_long_gone_leave_the_cache(home: Household) -> None:
    home.write("a.md", "alpha zqa\n")
    home.write("b.md", "beta zqb\n")
    home.walk()
    vectors = home.running.store.cache.of(home.embedder.identity.fingerprint, home.embedder.identity.dimension)
    old = text_hash("b\nbeta zqb")
    (home.notes / "b.md").unlink()
    home.walk()
    home.clock.now += 2 * 86_400
    assert "pruned" not in home.walk(), "texts come back: what is gone stays for a while"
    assert vectors.missing([old]) == set()
    home.clock.now += 31 * 86_400
    assert "pruned" in home.walk()
    assert vectors.missing([old]) == {old}
    assert vectors.missing([text_hash("a\nalpha zqa")]) == set()


def test_who_waits_is_told_when_the_daemon_stops(home: Household) -> None:
    ticket = home.running.worker.request([("notes", b"")], Ticket())
    home.running.worker.stop()
    with pytest.raises(Exception, match="stopping"):
        ticket.wait(1)


def test_a_log_that_is_never_quiet_is_taken_all_the_same(home: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home.write("app.log.txt", "line zqfirst\n")
    real_read = os.read

    def read_while_it_grows(descriptor: int, size: int) -> bytes:
        data = real_read(descriptor, size)
        if b"zqfirst" in data:
            with path.open("a") as file:
                file.write("one more line\n")
        return data

    monkeypatch.setattr("ragd.daemon.files.read.os.read", read_while_it_grows)
    home.hint("app.log.txt")
    for _ in range(8):
        home.settle()
    assert home.rels("zqfirst") == {"app.log.txt"}
