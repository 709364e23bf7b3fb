"""Timers: the only door to apscheduler.

What must stay true: a timer only posts (to the inbox); it never does the work. Never two at once of one timer, and
runs that were missed (a suspended laptop) merge into one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apscheduler.schedulers.background import BackgroundScheduler

_INTERVAL = re.compile(r"(\d+)\s*(s|m|h|d)")
_WEEKDAYS = {0: "sun", 1: "mon", 2: "tue", 3: "wed", 4: "thu", 5: "fri", 6: "sat", 7: "sun", 8: "8", 9: "9"}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Timer:
    """One line of `[schedule]`: `when` is an interval ("15m"), a cron expression in local time, or "off"."""

    name: str
    when: str
    post: Callable[[], None]


def interval_seconds(when: str) -> int | None:
    """Seconds of an interval such as "15m" or "1h"; None when `when` is not an interval."""
    match = _INTERVAL.fullmatch(when.strip())
    if match is None or int(match[1]) == 0:
        return None
    return int(match[1]) * _SECONDS[match[2]]


class Schedule:
    """Runs timers on a background thread until `stop`."""

    def __init__(self, timers: list[Timer]) -> None:
        self._timers = [timer for timer in timers if timer.when.strip() != "off"]
        self._scheduler: BackgroundScheduler | None = None

    def start(self) -> None:
        """Raises ValueError when a timer is neither an interval nor a cron expression."""
        from apscheduler.schedulers.background import BackgroundScheduler

        scheduler = BackgroundScheduler(job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None})
        for timer in self._timers:
            scheduler.add_job(timer.post, trigger=_trigger(timer.when), id=timer.name, name=timer.name)
        scheduler.start()
        self._scheduler = scheduler

    def stop(self) -> None:
        """Idempotent; does not wait for a timer that is running (it only posts)."""
        if self._scheduler is not None:
            self._scheduler.shutdown(wait=False)
            self._scheduler = None


def _trigger(when: str) -> object:
    """Raises ValueError."""
    from apscheduler.triggers.combining import OrTrigger
    from apscheduler.triggers.cron import CronTrigger
    from apscheduler.triggers.interval import IntervalTrigger

    seconds = interval_seconds(when)
    if seconds is not None:
        return IntervalTrigger(seconds=seconds)
    return OrTrigger([CronTrigger.from_crontab(crontab) for crontab in _crontabs(when)])


def _crontabs(when: str) -> list[str]:
    """A cron expression in the library's reading: it counts weekdays from Monday where crontab(5) counts from Sunday,
    and asks for both day of month and day of week where crontab(5) asks for either."""
    minute, hour, day, month, weekday = when.split()
    weekday = re.sub(r"(?<![/\d])\d(?!\d)", lambda match: _WEEKDAYS[int(match[0])], weekday)
    if day.startswith("*") or weekday.startswith("*"):
        return [f"{minute} {hour} {day} {month} {weekday}"]
    return [f"{minute} {hour} {day} {month} *", f"{minute} {hour} * {month} {weekday}"]


def check_when(when: str) -> str | None:
    """Why `when` cannot be used ("off", an interval or five cron fields), or None when it can."""
    if when.strip() == "off" or interval_seconds(when) is not None:
        return None
    if len(when.split()) != 5:
        return 'neither "off", an interval such as "15m", nor a cron expression of five fields'
    try:
        _trigger(when)
    except ValueError as error:
        return f"not a usable cron expression: {error}"
    return None
