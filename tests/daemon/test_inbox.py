"""The inbox with a clock that a test turns by hand."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future

import pytest

from ragd.daemon import inbox as inbox_module
from ragd.daemon.files.hints import Hint
from ragd.daemon.inbox import Inbox, Outcome, Scope


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Box:
    """An inbox with the default delays (250 ms quiet, at most 2 s) and a clock of its own."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.inbox = Inbox(clock=self.clock)

    def post(
        self, *paths: bytes, at: float = 0.0, root: str = "r", deleted: bool = False, folder: bool = False
    ) -> None:
        self.clock.now = 100.0 + at
        for path in paths:
            self.inbox.post(Hint(root, path, deleted, folder))

    def due(self, at: float) -> list[tuple[bytes, ...]]:
        self.clock.now = 100.0 + at
        return [scope.places for scope in self.inbox.due()]


@pytest.fixture
def box() -> Box:
    return Box()


def test_a_place_is_due_after_its_quiet_time(box: Box) -> None:
    box.post(b"a.md")
    assert box.inbox.next_due() == pytest.approx(100.25)
    assert box.due(0.24) == []
    assert box.due(0.26) == [(b"a.md",)]
    assert box.due(9) == []
    assert box.inbox.next_due() is None


def test_asking_twice_is_asking_once_and_starts_the_quiet_time_again(box: Box) -> None:
    box.post(b"a.md")
    box.post(b"a.md", at=0.2)
    assert box.due(0.3) == []
    assert box.due(0.46) == [(b"a.md",)]


def test_a_place_that_is_never_quiet_is_due_at_the_ceiling(box: Box) -> None:
    due = []
    for step in range(30):
        box.post(b"log.txt", at=step / 10)
        due += [(step, places) for places in box.due(step / 10)]
    assert due == [(20, (b"log.txt",))]


def test_one_busy_file_does_not_hold_up_another(box: Box) -> None:
    for step in range(8):
        box.post(b"log.txt", at=step / 10)
        if step == 2:
            box.post(b"a.md", at=0.2)
    assert box.due(0.75) == [(b"a.md",)]


def test_asking_while_busy_is_remembered(box: Box) -> None:
    box.post(b"a.md")
    (scope,) = _take(box, 1)
    box.post(b"a.md", at=1.1)
    box.inbox.finish(scope, {})
    assert box.due(2) == [(b"a.md",)]


def test_a_folder_takes_in_what_waits_below_it(box: Box) -> None:
    box.post(b"d/a.md", b"d/e/b.md", b"da.md")
    box.post(b"d", at=0.1, folder=True)
    box.post(b"d/c.md", at=0.2)
    assert box.inbox.waiting == 2
    assert box.due(0.3) == [(b"da.md",)]
    assert box.due(0.46) == [(b"d",)]


def test_many_names_become_their_folder_and_many_places_the_root(box: Box) -> None:
    box.post(*(b"d/%d.md" % number for number in range(inbox_module.MAX_NAMES)))
    assert box.inbox.waiting == inbox_module.MAX_NAMES
    box.post(b"d/one-more.md", b"d/another.md")
    assert box.inbox.waiting == 1
    assert box.due(1) == [(b"d",)]
    for folder in range(6):
        box.post(*(b"d%d/%d.md" % (folder, number) for number in range(100)))
    assert box.inbox.waiting == 1
    assert box.due(2) == [(b"",)]


def test_names_at_the_top_become_the_root(box: Box) -> None:
    box.post(*(b"%d.md" % number for number in range(inbox_module.MAX_NAMES + 1)))
    assert box.due(1) == [(b"",)]


def test_a_deletion_is_held_back_and_goes_along_with_an_addition(box: Box) -> None:
    box.post(b"old.md", deleted=True)
    assert box.due(0.26) == []
    assert box.due(0.51) == [(b"old.md",)]
    box.post(b"old.md", at=1, deleted=True)
    box.post(b"new.md", at=1)
    assert box.due(1.26) == [(b"new.md", b"old.md")]
    box.post(b"a.md", at=2, deleted=True)  # a git checkout: deleted and there again
    box.post(b"a.md", at=2.01)
    assert box.due(2.27) == [(b"a.md",)]


def test_roots_are_apart_and_those_with_requests_come_first(box: Box) -> None:
    box.post(b"a.md", root="one")
    box.post(b"b.md", root="two", at=0.1)
    box.inbox.request("three", b"c")
    box.clock.now = 101
    assert [scope.root for scope in box.inbox.due()] == ["three", "one", "two"]


def test_a_request_is_due_at_once_and_takes_along_what_waits_there(box: Box) -> None:
    box.post(b"d/a.md", b"e.md")
    future = box.inbox.request("r", b"d")
    (scope,) = _take(box, 0.01)
    assert scope.places == (b"d",)
    assert scope.requests == (future,)
    assert not future.done()
    box.inbox.finish(scope, {"seen": 3})
    assert future.result(0) == {"seen": 3}
    assert box.due(1) == [(b"e.md",)]


def test_equal_requests_are_one_walk_with_two_answers(box: Box) -> None:
    futures = [box.inbox.request("r"), box.inbox.request("r"), box.inbox.request("r", b"a/b")]
    (scope,) = _take(box, 0)
    assert scope.places == (b"",)
    box.inbox.fail(scope, RuntimeError("no"))
    for future in futures:
        with pytest.raises(RuntimeError, match="no"):
            future.result(0)


def test_a_cancelled_request_is_no_error(box: Box) -> None:
    future = box.inbox.request("r")
    assert future.cancel()
    (scope,) = _take(box, 0)
    box.inbox.finish(scope, {})
    assert future.cancelled()


def test_evidence_is_there_before_the_scope_and_used_up_after_it(box: Box) -> None:
    covers = box.inbox.evidence("r")
    box.post(b"d/a.md", deleted=True)
    box.post(b"tree", deleted=True, folder=True)
    assert covers(b"d/a.md")
    assert covers(b"d/sibling.md")
    assert not covers(b"d/deep/b.md")
    assert not covers(b"b.md")
    assert covers(b"tree/x/y.md")
    assert not box.inbox.evidence("other")(b"d/a.md")
    (scope,) = _take(box, 1)
    assert covers(b"tree/x/y.md")
    box.post(b"later/a.md", at=1.1, deleted=True)
    box.inbox.finish(scope, {})
    assert covers(b"later/a.md")
    assert covers(b"tree/x/y.md")  # something of the root still waits: it may be its evidence
    (scope,) = _take(box, 3)
    box.inbox.finish(scope, {})
    assert not covers(b"later/a.md")
    assert not covers(b"tree/x/y.md")


def test_evidence_survives_the_collapse_of_names(box: Box) -> None:
    box.post(*(b"d/%d.md" % number for number in range(1000)), deleted=True)
    assert box.inbox.waiting == 1
    assert all(map(box.inbox.evidence("r"), (b"d/0.md", b"d/999.md")))


def test_closing_cancels_and_wakes(box: Box) -> None:
    future = box.inbox.request("r")
    box.inbox.close()
    box.inbox.close()
    assert future.cancelled()
    assert box.inbox.request("r").cancelled()
    box.post(b"a.md")
    assert box.due(9) == []
    assert not box.inbox.wait(5)


def test_wait_wakes_when_something_is_due_and_not_before() -> None:
    inbox = Inbox(debounce_ms=50, max_delay_ms=200)
    assert not inbox.wait(0.01)
    began = time.monotonic()
    inbox.post(Hint("r", b"a.md"))
    assert inbox.wait(10)
    assert 0.045 <= time.monotonic() - began < 5
    assert [scope.places for scope in inbox.due()] == [(b"a.md",)]

    woken: list[bool] = []
    waiter = threading.Thread(target=lambda: woken.append(inbox.wait(30)))
    waiter.start()
    inbox.request("r")
    waiter.join(10)
    assert woken == [True]


def test_nothing_is_lost_between_threads() -> None:
    """Four threads post and ask while one takes: every request is answered, every place handed out."""
    inbox = Inbox(debounce_ms=1, max_delay_ms=5)
    taken: set[bytes] = set()
    done = threading.Event()

    def work() -> None:
        while not done.is_set() or inbox.waiting:
            inbox.wait(0.01)
            for scope in inbox.due():
                taken.update(scope.places)
                inbox.finish(scope, {})

    def post(thread: int) -> None:
        futures: list[Future[Outcome]] = []
        for number in range(50):
            inbox.post(Hint("r", b"%d-%d" % (thread, number)))
            futures.append(inbox.request("s", b"%d" % number))
        for future in futures:
            assert future.result(20) == {}

    worker = threading.Thread(target=work)
    worker.start()
    threads = [threading.Thread(target=post, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    done.set()
    worker.join(10)
    assert not worker.is_alive()
    wanted = {b"%d-%d" % (thread, number) for thread in range(4) for number in range(50)}
    assert wanted <= taken or b"" in taken


def _take(box: Box, at: float) -> list[Scope]:
    box.clock.now = 100.0 + at
    return box.inbox.due()
