"""Requests that reach a daemon before its worker runs: only the worker's thread may ever work."""

from __future__ import annotations

import threading
from pathlib import Path

from engine_kit import Household

from ragd.daemon.backend import OWNER


def test_a_sync_that_comes_before_the_worker_runs_waits_for_it(tmp_path: Path) -> None:
    """It did the work itself once, beside the worker's thread: a task was lost and the sync never ended."""
    home = Household(tmp_path)
    engine = home.open()
    workers: set[str] = set()
    tick = engine.worker.tick

    def noted() -> object:
        workers.add(threading.current_thread().name)
        return tick()

    engine.worker.tick = noted  # type: ignore[method-assign,assignment] - to see which thread works
    try:
        home.write("a.md", "# A\n\nalpha zqa\n")
        engine.serve()
        assert engine.status(OWNER)["state"] == "starting"
        asking = threading.Thread(target=engine.sync, args=(OWNER, []), name="request")
        asking.start()
        asking.join(0.3)
        assert asking.is_alive()
        engine.start()
        asking.join(20)
        assert not asking.is_alive()
        assert workers == {"worker"}
    finally:
        home.close()
