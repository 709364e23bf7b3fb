"""Timers post, and a wrong one says why."""

from __future__ import annotations

import threading

import pytest

from ragd.daemon.schedule import Schedule, Timer, check_when, interval_seconds


@pytest.mark.parametrize(
    ("when", "seconds"),
    [("15m", 900), ("1h", 3600), ("30s", 30), ("2d", 172800), ("0m", None), ("soon", None), ("*/5 * * * *", None)],
)
def test_an_interval_is_read_in_seconds(when: str, seconds: int | None) -> None:
    assert interval_seconds(when) == seconds


@pytest.mark.parametrize("when", ["off", "15m", "0 3 * * *", "*/10 8-18 * * mon-fri"])
def test_usable_times_have_no_problem(when: str) -> None:
    assert check_when(when) is None


@pytest.mark.parametrize("when", ["", "every day", "61 * * * *", "0m", "* * * *"])
def test_an_unusable_time_says_why(when: str) -> None:
    assert check_when(when)


def test_a_timer_posts_and_off_never_does() -> None:
    posted = threading.Event()
    never = threading.Event()
    schedule = Schedule([Timer("walk", "1s", posted.set), Timer("retry", "off", never.set)])
    schedule.start()
    try:
        assert posted.wait(10)
    finally:
        schedule.stop()
        schedule.stop()
    assert not never.is_set()
