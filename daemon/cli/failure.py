"""Errors to exit codes: the one place where that is decided.

What must stay true: what a person can mend is said in a sentence, without a traceback; only what nobody
foresaw is exit code 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from ragd.daemon.errors import (
    ModelUnavailableError,
    NotFoundError,
    StateLockedError,
    StoreUnavailableError,
    UsageError,
    UserError,
)

EXIT_INTERRUPTED = 130
EXIT_OUTPUT_CLOSED = 141
"""As a shell shows a program that wrote into a closed pipe."""


class OutputClosedError(Exception):
    """Whoever read the output has gone (`ragd search ... | head`)."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How a command ended that did not end well. `message` is empty where nothing is to be said."""

    exit_code: int
    code: str
    message: str
    field: str | None = None
    problems: tuple[str, ...] = ()

    def as_answer(self) -> dict[str, Any]:
        """The JSON object of an error."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.field is not None:
            error["field"] = self.field
        if self.problems:
            error["problems"] = list(self.problems)
        return {"error": error}


def failure_of(error: BaseException) -> Failure:
    """What to say of an error, and the exit code."""
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return Failure(EXIT_INTERRUPTED, "interrupted", "")
    if isinstance(error, OutputClosedError):
        return Failure(EXIT_OUTPUT_CLOSED, "output_closed", "")
    if isinstance(error, UserError):
        return Failure(error.exit_code, error.code, str(error), problems=error.problems)
    if isinstance(error, click.UsageError):
        return Failure(UsageError.exit_code, UsageError.code, _of_click(error))
    if isinstance(error, click.ClickException):
        return Failure(UsageError.exit_code, UsageError.code, error.format_message())
    return _of_store(error) or _unforeseen(error)


def _of_click(error: click.UsageError) -> str:
    command = error.ctx.command_path if error.ctx is not None else "ragd"
    message = error.format_message()
    return f"{message}{'' if message.endswith(('.', '?')) else '.'} See `{command} --help`."


def _of_store(error: BaseException) -> Failure | None:
    from ragd.store import errors

    if isinstance(error, errors.FilterError):
        return Failure(UsageError.exit_code, "invalid", str(error), field=error.field)
    kinds: list[tuple[type[Exception], type[UserError]]] = [
        (errors.LockedError, StateLockedError),
        (errors.PlaceNotFoundError, NotFoundError),
        (errors.ModelError, ModelUnavailableError),
        (errors.StoreError, StoreUnavailableError),
    ]
    for kind, known in kinds:
        if isinstance(error, kind):
            return Failure(known.exit_code, known.code, str(error))
    return None


def _unforeseen(error: BaseException) -> Failure:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Failure(
        UserError.exit_code,
        UserError.code,
        f"Unexpected error, a bug in ragd: {what}\nWith RAGD_DEBUG=1 the same command shows where it happened.",
    )
