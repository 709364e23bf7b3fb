"""Timers post, and a wrong one says why."""

from __future__ import annotations

import threading
from datetime import datetime

import pytest
from tzlocal import get_localzone

from ragd.daemon.schedule import Schedule, Timer, _trigger, check_when, interval_seconds


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


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("0 3 * * 1", "2026-12-07T03:00"),  # the Monday after Tuesday 2026-12-01
        ("0 3 * * 0", "2026-12-06T03:00"),
        ("0 3 * * 7", "2026-12-06T03:00"),
        ("0 3 * * 5-6", "2026-12-04T03:00"),
        ("0 3 * * mon", "2026-12-07T03:00"),
        ("0 3 9 * 1", "2026-12-07T03:00"),  # the 9th or a Monday
        ("0 3 3 * 1", "2026-12-03T03:00"),
    ],
)
def test_days_are_those_of_crontab(when: str, expected: str) -> None:
    trigger = _trigger(when)
    now = datetime(2026, 12, 1, 12, tzinfo=get_localzone())
    fires = trigger.get_next_fire_time(None, now)  # type: ignore[attr-defined]
    assert fires.strftime("%Y-%m-%dT%H:%M") == expected


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
