"""Looking after the watcher while the daemon runs: its health, what has to be polled, what it says of itself.

What must stay true: it only posts to the inbox and never works; when watching fails, polling takes its place and
`status` says so.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from ragd.daemon.config_schema import WatchSection
from ragd.daemon.files.hints import Hint
from ragd.daemon.files.watcher import Watcher, WatchSettings
from ragd.daemon.root_set import RootSet
from ragd.daemon.status import WatchState

log = logging.getLogger(__name__)

HEALTH_S = 2.0
_POLL = {True: "always", False: "never", "auto": "auto"}


class Watching:
    """`start` returns when the roots are watched; after it the first walk may begin."""

    def __init__(
        self,
        roots: RootSet,
        settings: WatchSection,
        post: Callable[[Hint], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._roots = roots
        self._poll_s = settings.poll_seconds
        self._post = post
        self._clock = clock
        self.watcher = Watcher([root.ignore for root in roots], post, WatchSettings(_POLL[settings.poll]))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watching", daemon=True)
        self._polled_at = clock()
        self._said: list[str] = []

    def start(self) -> None:
        self.watcher.start()
        self._thread.start()

    def stop(self) -> None:
        """Idempotent."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self.watcher.stop()

    def state(self) -> WatchState:
        """For `status`."""
        reasons = [reason for root in self._roots if (reason := self.watcher.rescan_reason(root.name))]
        return WatchState(
            modes={root.name: self.watcher.mode(root.name) for root in self._roots},
            problems=self.watcher.problems(),
            last_rescan_reason=reasons[0] if reasons else None,
        )

    def on_walked(self, root: str, folders: list[bytes]) -> None:
        """A whole root was walked: what lacks a watch gets one."""
        missing = self.watcher.compare(root, folders)
        if missing:
            log.info("%d folders of %s were not watched and are now", missing, root)

    def check(self) -> None:
        """One look at health and polling; the thread repeats it."""
        self.watcher.health()
        problems = self.watcher.problems()
        for problem in problems:
            if problem not in self._said:
                log.warning("%s", problem)
        self._said = problems
        if self._clock() - self._polled_at >= self._poll_s:
            self._polled_at = self._clock()
            _post_all(self._post, self.watcher.to_poll())

    def _run(self) -> None:
        while not self._stopping.wait(HEALTH_S):
            try:
                self.check()
            except Exception:
                log.exception("looking after the watcher failed; it is tried again")


def _post_all(post: Callable[[Hint], None], hints: Iterable[Hint]) -> None:
    for hint in hints:
        post(hint)
