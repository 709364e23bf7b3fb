"""Questions before bulk work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from ragd.store.turns import Turns


def run_in_order(turns: Turns, wishes: list[tuple[str, bool]]) -> list[str]:
    """Let every wish (name, is a question) wait behind a busy turn, in order, then see in which order they
    get it."""
    order: list[str] = []

    def take(name: str, question: bool) -> None:
        with turns.question() if question else turns.bulk():
            order.append(name)

    threads = [threading.Thread(target=take, args=wish) for wish in wishes]
    with turns.bulk():
        for position, thread in enumerate(threads):
            thread.start()
            wait_until(lambda expected=position + 1: turns._questions_waiting + turns._bulk_waiting == expected)
    for thread in threads:
        thread.join()
    return order


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_questions_that_wait_go_before_bulk_work() -> None:
    order = run_in_order(Turns(), [("b1", False), ("q1", True), ("b2", False), ("q2", True), ("q3", True)])
    assert set(order[:3]) == {"q1", "q2", "q3"}
    assert set(order[3:]) == {"b1", "b2"}


def test_bulk_work_gets_a_turn_after_as_many_questions_as_patience_says() -> None:
    order = run_in_order(Turns(patience=3), [("bulk", False)] + [(f"q{n}", True) for n in range(8)])
    assert order.index("bulk") == 3
    assert len(order) == 9


def test_one_at_a_time() -> None:
    turns = Turns()
    inside = [0]
    most = [0]

    def work(question: bool) -> None:
        for _ in range(50):
            with turns.question() if question else turns.bulk():
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0)
                inside[0] -= 1

    threads = [threading.Thread(target=work, args=(number % 2 == 0,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_an_error_in_a_turn_ends_the_turn() -> None:
    turns = Turns()
    for take in (turns.bulk, turns.question):
        with pytest.raises(ZeroDivisionError), take():
            _ = 1 / 0
    with turns.bulk():
        pass


def test_recent_questions_are_remembered_for_a_while() -> None:
    now = [100.0]
    turns = Turns(clock=lambda: now[0])
    assert not turns.questions_within(3.0)
    with turns.question():
        pass
    now[0] += 2.9
    assert turns.questions_within(3.0)
    now[0] += 0.2
    assert not turns.questions_within(3.0)
