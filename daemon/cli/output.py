"""What reaches standard output and standard error: one JSON object, or text for a person.

What must stay true: in JSON mode standard output gets exactly one object; text of files cannot steer the
terminal; colours, bars and wrapping are for a terminal only, a pipe gets plain whole lines.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from ragd.daemon.cli.failure import Failure, OutputClosedError
from ragd.daemon.cli.invocation import Invocation

if TYPE_CHECKING:
    from rich.console import Console

Answer = Mapping[str, Any]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WIDTH_OF_A_PIPE = 1_000_000


def printable(text: str) -> str:
    """Text without what a terminal would obey: control characters but for tab and newline are shown as
    U+FFFD."""
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n"))


def console(stream: TextIO | None = None) -> Console:
    """For people: rich on a terminal, plain and unwrapped in a pipe."""
    from rich.console import Console

    stream = sys.stdout if stream is None else stream
    width = None if stream.isatty() else _WIDTH_OF_A_PIPE
    return Console(
        file=stream,
        width=width,
        highlight=False,
        emoji=False,
        markup=False,
        soft_wrap=False,
        legacy_windows=False,
    )


def show(invocation: Invocation, answer: Answer, for_people: Callable[[Console, Answer], None]) -> None:
    """The answer of a command. Raises OutputClosedError when nobody reads it any more."""
    try:
        if invocation.as_json:
            write_json(answer)
        else:
            _stop_failing_on_encoding(sys.stdout)
            for_people(console(), answer)
            sys.stdout.flush()
    except BrokenPipeError as error:
        raise OutputClosedError from error


def write_json(answer: Answer) -> None:
    """One object, UTF-8 whatever the locale; laid out on a terminal, one line in a pipe."""
    indent = 2 if sys.stdout.isatty() else None
    text = json.dumps(answer, ensure_ascii=False, indent=indent, allow_nan=False) + "\n"
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))  # a lone surrogate becomes its JSON escape
    sys.stdout.buffer.flush()


def write_text(text: str) -> None:
    """Text as it is, for a file or another program. Raises OutputClosedError."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError as error:
        raise OutputClosedError from error


def say(message: str) -> None:
    """A line for the person on standard error."""
    _stop_failing_on_encoding(sys.stderr)
    print(printable(message), file=sys.stderr, flush=True)


def show_failure(failure: Failure, *, as_json: bool) -> None:
    """How a command that failed says so. Never raises because nobody reads it."""
    if not failure.message:
        return
    try:
        if as_json:
            write_json(failure.as_answer())
        else:
            say("\n".join([f"ragd: {failure.message}", *(f"  {problem}" for problem in failure.problems)]))
    except BrokenPipeError:
        silence_standard_output()


def silence_standard_output() -> None:
    """After the reader has gone: what the interpreter still flushes at its end goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stop_failing_on_encoding(stream: TextIO) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
