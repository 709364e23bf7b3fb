"""Random edits, removals, renames, failing texts, kills, damage and open queries: in the end the store equals the
files, and no text was embedded twice."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from store_kit import ROOT, Embedder, House, Killed, assert_consistent, fail, forget, index_file, kill, stat

from ragd.store.snapshot import Snapshot
from ragd.store.store import Store
from ragd.store.types import Change, TouchFile

PATHS = st.sampled_from([b"a.md", b"b.md", b"dir/c.md", b"dir/\xff.md"])
TEXTS = st.lists(st.sampled_from([f"text {n}" for n in range(8)]), max_size=5)
TITLES = st.sampled_from(["One", "Two"])


class StoreMachine(RuleBasedStateMachine):
    """`disk` is the truth; `sync` does what the worker does."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.house = House(self.folder / "state")
        self.embedder = Embedder()
        self.disk: dict[bytes, tuple[list[str], str]] = {}
        self.unreadable: set[bytes] = set()
        self.held = ExitStack()
        self.queries: list[tuple[Snapshot, object, bool]] = []
        self.store: Store = self.house.open()

    # --- what a person does to the files

    @rule(path=PATHS, texts=TEXTS, title=TITLES)
    def edit(self, path: bytes, texts: list[str], title: str) -> None:
        self.disk[path] = (texts, title)
        self.unreadable.discard(path)

    @rule(path=PATHS)
    def remove(self, path: bytes) -> None:
        self.disk.pop(path, None)
        self.unreadable.discard(path)

    @rule(old=PATHS, new=PATHS)
    def rename(self, old: bytes, new: bytes) -> None:
        if old in self.disk and old not in self.unreadable:
            self.disk[new] = self.disk.pop(old)
            self.unreadable.discard(new)

    @rule(path=PATHS)
    def becomes_unreadable(self, path: bytes) -> None:
        if path in self.disk:
            self.unreadable.add(path)

    # --- what goes wrong

    @rule(number=st.integers(0, 7), is_nan=st.booleans())
    def a_text_cannot_be_embedded(self, number: int, is_nan: bool) -> None:
        (self.embedder.nan if is_nan else self.embedder.fails).add(f"text {number}")

    @rule()
    def texts_can_be_embedded_again(self) -> None:
        self.embedder.nan.clear()
        self.embedder.fails.clear()

    @rule(step=st.integers(0, 25))
    def killed_while_syncing(self, step: int) -> None:
        self.house.kill_at = len(self.house.steps) + step
        try:
            self.sync()
        except Killed:
            self._after_a_kill()
        self.house.kill_at = None

    @rule(count=st.integers(1, 4))
    def the_index_loses_rows(self, count: int) -> None:
        self._restart()
        rows = self.house.index.collections.get(self.store.live.collection)
        for key in sorted(rows.rows)[:count] if rows else ():
            del rows.rows[key]
        self.store.verify(repair=True)

    @rule()
    def the_index_is_damaged(self) -> None:
        self._restart(lambda: setattr(self.house.index, "is_damaged", True))
        self.store.recover()

    @rule(step=st.integers(0, 8))
    def killed_while_recovering(self, step: int) -> None:
        self._restart(self.house.index.collections.clear)
        self.house.kill_at = len(self.house.steps) + step
        try:
            self.store.recover()
        except Killed:
            self._after_a_kill()
        self.house.kill_at = None

    # --- what the daemon does

    @rule()
    def sync(self) -> None:
        known = {row.path: row for row in self.store.catalog.plan_rows(self.store.target.id, ROOT)}
        changes: list[Change] = [forget(path) for path in known if path not in self.disk]
        for path, (texts, title) in self.disk.items():
            change = index_file(texts, path, title=title)
            row = known.get(path)
            if path in self.unreadable:
                changes.append(fail(path))
            elif (
                row
                and row.state == "indexed"
                and row.content_hash == change.content_hash
                and row.recipe == change.cut.recipe
                and self.store.catalog.file_row(self.store.target.id, ROOT, path).title == title
            ):
                changes.append(TouchFile(ROOT, path, stat(9), True))
            else:
                changes.append(change)
        self.store.commit(changes, self.embedder)

    @rule()
    def restart(self) -> None:
        self._restart()

    @rule()
    def drain(self) -> None:
        assert self.store.drain() or self.queries

    @precondition(lambda self: len(self.queries) < 3)
    @rule()
    def a_query_begins(self) -> None:
        snapshot = self.held.enter_context(self.store.snapshot())
        rows = list(snapshot.execute("SELECT id FROM chunk ORDER BY id"))
        self.queries.append((snapshot, rows, self.store.index_is_ready))

    @rule()
    def the_queries_end(self) -> None:
        self._end_queries()

    # --- what holds always

    @invariant()
    def what_a_query_sees_stays_and_is_in_the_index(self) -> None:
        for snapshot, rows, was_ready in getattr(self, "queries", ()):
            now = list(snapshot.execute("SELECT id FROM chunk ORDER BY id"))
            assert now == rows
            if was_ready:  # else rows that were lost are only now being written again
                assert {row[0] for row in now} <= self.house.index.ids(snapshot.live.collection)

    @invariant()
    def what_is_live_is_in_the_index_and_the_rest_is_pending(self) -> None:
        if not hasattr(self, "store") or not self.store.index_is_ready:
            return
        with self.store.snapshot() as snapshot:
            live = {row[0] for row in snapshot.execute("SELECT id FROM chunk")}
            pending = {row[0] for row in snapshot.execute("SELECT id FROM pending")}
        here = self.house.index.ids(self.store.live.collection)
        assert live <= here
        assert here - live <= pending
        assert not live & pending

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        try:
            self._end_queries()
            self.texts_can_be_embedded_again()
            self.unreadable.clear()
            self.sync()
            assert self.store.drain()
            assert_consistent(self.house, self.store)
            with self.store.snapshot() as snapshot:
                found = {
                    path: ([row.text for row in snapshot.file_chunks(ROOT, path)], title)
                    for path, title in snapshot.execute("SELECT path, title FROM file")
                }
            assert found == self.disk
            assert all(count == 1 for count in self.embedder.embedded.values()), "no text is embedded twice"
            self.store.close()
        finally:
            shutil.rmtree(self.folder)

    # --- inside

    def _end_queries(self) -> None:
        self.queries.clear()
        self.held.close()

    def _after_a_kill(self) -> None:
        self._end_queries()
        self.house.kill_at = None
        kill(self.store)
        self.store = self.house.open()

    def _restart(self, between=lambda: None) -> None:
        self._end_queries()
        self.store.close()
        between()
        self.store = self.house.open()


def test_law_the_store_equals_the_files_whatever_happens() -> None:
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            max_examples=40,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
