"""Every interleaving of the steps of a commit and the steps of a query.

A query opens its snapshot, asks the index, resolves. The commit stops at each of its steps. For each step at which
the snapshot opens and each later one at which the query ends, the commit is run once, and the query asks at every
step between: it must find the whole old version or the whole new one, never a mix and never neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import pytest
from store_kit import ROOT, Embedder, House, assert_consistent, forget, index_file, texts_of

from ragd.store.epochs import Epochs
from ragd.store.errors import StoreError
from ragd.store.snapshot import Snapshot
from ragd.store.store import Store
from ragd.store.types import Change

QUERY = Embedder().embed_query("anything")[0]

OTHER = index_file(["a bystander"], b"other.md")
OLD = [index_file(["one", "two", "three"]), OTHER]

SCENARIOS: dict[str, tuple[Sequence[Change], Sequence[Change]]] = {
    "new": ([OTHER], [index_file(["one", "two"])]),
    "replace": (OLD, [index_file(["four", "five", "six"])]),
    "shrink": (OLD, [index_file(["two"])]),
    "grow": (OLD, [index_file(["one", "zero", "two", "three", "four"])]),
    "delete": (OLD, [forget()]),
    "move": (OLD, [index_file(["one", "two", "three"], b"new.md"), forget()]),
    "back and forth": (OLD, [index_file(["one", "four"]), index_file(["one", "two"])]),
    "retitle": (OLD, [index_file(["one", "two", "three"], title="Other")]),
}


def ask(store: Store, snapshot: Snapshot) -> set[tuple[bytes, str]]:
    """All live hits: ask for more until nothing more comes."""
    generation = snapshot.live
    assert generation is not None
    asked = 2
    while True:
        found = store.index.query(generation.collection, QUERY, asked)
        if len(found) < asked:
            rows = snapshot.chunks([key for key, _ in found])
            return {(row.path, row.text) for row in rows.values()}
        asked *= 2


State = set[tuple[bytes, str]]


def state_of(store: Store) -> State:
    return {(path, text) for (_, path), texts in texts_of(store).items() for text in texts}


def reset(house: House, store: Store, before: Sequence[Change]) -> None:
    """The state before the commit, again."""
    house.on_step = lambda _: None
    wanted = {change.path for change in before}
    store.commit([*before, *(forget(path) for _, path in texts_of(store) if path not in wanted)], Embedder())
    assert store.drain()
    house.steps.clear()


def run(house: House, store: Store, after: Sequence[Change], opens: int, ends: int) -> list[State]:
    """Commit with one query open from step `opens` to step `ends`; what it found at each step between, and what
    a query finds afterwards."""
    answers: list[State] = []
    with ExitStack() as stack:
        held: list[Snapshot] = []

        def at(place: int) -> None:
            if place == opens:
                held.append(stack.enter_context(store.snapshot()))
            if held:
                answers.append(ask(store, held[0]))
            if place == ends:
                held.clear()
                stack.close()

        house.on_step = lambda _: at(len(house.steps))
        at(0)
        store.commit(after, Embedder())
        house.on_step = lambda _: None
    assert store.drain()
    assert_consistent(house, store)
    with store.snapshot() as snapshot:
        answers.append(ask(store, snapshot))
    return answers


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_law_a_query_sees_the_old_version_or_the_new_one(name: str, house: House) -> None:
    before, after = SCENARIOS[name]
    store = house.open()
    store.commit(before, Embedder())
    allowed = [state_of(store)]
    house.on_step = lambda step: allowed.append(state_of(store)) if step == "c" else None
    store.commit(after, Embedder())
    assert allowed[0] != allowed[1] or name == "retitle"
    reset(house, store, before)
    store.commit(after, Embedder())
    count = len(house.steps)
    assert count >= 4
    seen = 0
    for opens in range(count + 1):
        for ends in range(opens, count + 1):
            reset(house, store, before)
            answers = run(house, store, after, opens, ends)
            assert all(answer in allowed for answer in answers), (opens, ends, answers)
            assert all(answer == answers[0] for answer in answers[:-1]), "one snapshot, one answer"
            assert answers[-1] == allowed[-1]
            seen += len(answers)
    assert seen > count * count / 2
    store.close()


def test_deletes_wait_for_the_queries_that_began_before(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one", "two"])], embedder)
    with store.snapshot():
        store.commit([index_file(["two", "three"])], embedder)
        assert not house.index.deleted
        with store.snapshot():
            assert not store.drain()
        store.commit([index_file(["three", "four"], b"b.md")], embedder)
        assert not house.index.deleted
        assert store.catalog.pending() == 1
    assert store.drain()
    assert len(house.index.deleted) == 1
    assert_consistent(house, store)


def test_a_query_that_began_later_holds_nothing_up(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one", "two"])], embedder)
    with store.snapshot():
        store.commit([index_file(["two"])], embedder)
        later = store.snapshot()
        later.__enter__()
    assert store.drain()
    assert_consistent(house, store)
    later.__exit__(None, None, None)


def test_an_id_that_comes_back_while_its_delete_waits_is_not_deleted(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one", "two"])], embedder)
    with store.snapshot():
        store.commit([index_file(["two"])], embedder)
        store.commit([index_file(["one", "two"])], embedder)
    assert store.drain()
    assert texts_of(store) == {(ROOT, b"a.md"): ["one", "two"]}
    assert_consistent(house, store)


def test_an_id_that_goes_twice_waits_for_the_later_queries(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one", "two"])], embedder)
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(store.snapshot())
        store.commit([index_file(["two"])], embedder)
        store.commit([index_file(["one", "two"])], embedder)
        snapshot = second.enter_context(store.snapshot())
        store.commit([index_file(["two"])], embedder)
        first.close()
        assert not store.drain()
        assert ask(store, snapshot) == {(b"a.md", "one"), (b"a.md", "two")}
    assert store.drain()
    assert_consistent(house, store)


def test_an_id_that_comes_back_in_a_commit_that_fails_still_waits_for_its_queries(house: House) -> None:
    store, embedder = house.open(), Embedder()
    store.commit([index_file(["one", "two"])], embedder)
    with store.snapshot() as snapshot:
        store.commit([index_file(["two"])], embedder)

        def fail_once(name: str) -> None:
            if name == "index row":
                house.on_step = lambda _: None
                raise StoreError("the index is away")

        house.on_step = fail_once
        with pytest.raises(StoreError):
            store.commit([index_file(["one", "two"])], embedder)
        assert not store.drain()
        assert ask(store, snapshot) == {(b"a.md", "one"), (b"a.md", "two")}
    assert store.drain()
    assert_consistent(house, store)


def test_epochs_are_safe_only_after_every_earlier_query() -> None:
    epochs = Epochs()
    assert epochs.safe == 1
    with epochs.query():
        assert epochs.next == 2
        epochs.advance()
        with epochs.query():
            epochs.advance()
            assert epochs.safe == 1
        assert epochs.safe == 1
    assert epochs.safe == 3
