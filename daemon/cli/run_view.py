"""What `ragd run` shows: one line that lives on a terminal, plain lines of what changed everywhere else.

What must stay true: it only shows what it is told; a terminal that is slow or gone never holds the daemon up
for longer than a line takes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

from ragd.daemon.cli.output import console, printable

Answer = Mapping[str, Any]
Clock = Callable[[], float]

_PLAIN_SECONDS = 10.0
_BUSY = frozenset({"starting", "indexing", "rebuilding"})


class View(Protocol):
    """`report` takes the answer of `status`, as often as the daemon likes."""

    log_handler: logging.Handler

    def report(self, status: Answer) -> None: ...


def line_of(status: Answer) -> str:
    """One line: what the daemon does, and how much of it is done."""
    state = str(status.get("state", "starting"))
    generation = status.get("generation") or {}
    done, total, pending = (
        generation.get("done") or 0,
        generation.get("total") or 0,
        status.get("pending") or 0,
    )
    files = sum(root.get("files") or 0 for root in status.get("roots") or [])
    parts = [state]
    if state in _BUSY and total:
        parts.append(f"{done:,} of {total:,} files")
    elif state in _BUSY and pending:
        parts.append(f"{pending:,} files to go")
    parts.append(f"{files:,} files, {status.get('chunks') or 0:,} chunks")
    if status.get("failed"):
        parts.append(f"{status['failed']:,} failed (`ragd status --failed`)")
    return printable(" · ".join(parts))


class PlainView:
    """For a log: a line when the state or a problem is new, and now and then while it works."""

    def __init__(self, stream: TextIO, ask: str, clock: Clock = time.monotonic) -> None:
        self._stream = stream
        self._ask = ask
        self._clock = clock
        self._state: str | None = None
        self._problems: tuple[str, ...] = ()
        self._said_at = 0.0
        self._last = ""
        self.log_handler: logging.Handler = logging.StreamHandler(stream)
        self.log_handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))

    def report(self, status: Answer) -> None:
        for problem in _new_problems(status, self._problems):
            self._say(f"! {problem}")
        self._problems = _problems(status)
        state, line = str(status.get("state")), line_of(status)
        if state != self._state:
            if self._state is None:
                self._say(f"Ask from another terminal: {self._ask}")
            self._say(line)
        elif state in _BUSY and line != self._last and self._clock() - self._said_at >= _PLAIN_SECONDS:
            self._say(line)
        self._state = state

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)
        self._said_at, self._last = self._clock(), line


class LiveView:
    """For a terminal."""

    def __init__(self, stream: TextIO, ask: str) -> None:
        from rich.highlighter import NullHighlighter
        from rich.logging import RichHandler
        from rich.status import Status

        self._console = console(stream)
        self._status = Status("starting", console=self._console, spinner="dots")
        self._problems: tuple[str, ...] = ()
        self._spins = True
        self._has_reported = False
        self._ask = ask
        self.log_handler: logging.Handler = RichHandler(
            console=self._console,
            show_path=False,
            markup=False,
            highlighter=NullHighlighter(),
            log_time_format="%H:%M:%S",
        )
        self.log_handler.setFormatter(logging.Formatter("%(message)s"))

    def start(self) -> None:
        self._status.start()

    def stop(self) -> None:
        self._status.stop()

    def report(self, status: Answer) -> None:
        from rich.text import Text

        if not self._has_reported:
            self._has_reported = True
            # In one piece: the line that lives is drawn over one that has no end yet.
            ask = Text.assemble(("Ask from another terminal:  ", "dim"), (self._ask, "bold"))
            self._console.print(ask, soft_wrap=True)
            self._console.print("Ctrl-C ends it; what is indexed is kept.", style="dim")
        for problem in _new_problems(status, self._problems):
            self._console.print(f"! {problem}", style="yellow")
        self._problems = _problems(status)
        spins = str(status.get("state")) in _BUSY
        if spins != self._spins:
            self._spins = spins
            self._status.update(spinner="dots" if spins else "simpleDots", speed=1.0 if spins else 0.3)
        self._status.update(line_of(status))


@contextmanager
def open_view(stream: TextIO, ask: str) -> Iterator[View]:
    """The view that fits the stream."""
    if not stream.isatty():
        yield PlainView(stream, ask)
        return
    view = LiveView(stream, ask)
    view.start()
    try:
        yield view
    finally:
        view.stop()


def _problems(status: Answer) -> tuple[str, ...]:
    found = status.get("problems") or []
    return tuple(
        printable(str(problem.get("message", problem) if isinstance(problem, Mapping) else problem))
        for problem in found
    )


def _new_problems(status: Answer, known: tuple[str, ...]) -> list[str]:
    return [problem for problem in _problems(status) if problem not in known]
