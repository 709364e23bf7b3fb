"""Errors as they travel over HTTP, both ways.

What must stay true: what a Backend raises in the daemon, the client raises again in the other process: the
same class, message and field. An error nobody foresaw says nothing of its inside.
"""

from __future__ import annotations

from typing import Any

from ragd.daemon.errors import (
    AddressInUseError,
    ModelStillLoadingError,
    ModelUnavailableError,
    NoDaemonError,
    NotFoundError,
    StateLockedError,
    StoreUnavailableError,
    UsageError,
    UserError,
)
from ragd.store.errors import (
    FilterError,
    ModelError,
    ModelLoadingError,
    PlaceNotFoundError,
    StoreError,
)

RETRY_AFTER_SECONDS = 2
PROGRESS_TYPE = "application/x-ndjson"
"""What a client accepts to be told of a sync's progress: a line of JSON each, the last one the answer."""

_STATUS: dict[type[UserError], int] = {
    UsageError: 400,
    NotFoundError: 404,
    StateLockedError: 409,
    AddressInUseError: 409,
    ModelStillLoadingError: 503,
    ModelUnavailableError: 503,
    StoreUnavailableError: 503,
    NoDaemonError: 503,
    UserError: 500,
}
_BY_CODE: dict[str, type[UserError]] = {kind.code: kind for kind in _STATUS}

INVALID = "invalid"
"""The code of a parameter that cannot be used; `field` names it."""


class RefusedError(Exception):
    """A request that is turned away before a Backend sees it: `status` and `code` of the answer."""

    def __init__(self, status: int, code: str, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.field = field


def body(code: str, message: str, field: str | None = None, problems: tuple[str, ...] = ()) -> dict[str, Any]:
    """The shape of every error."""
    error: dict[str, Any] = {"code": code, "message": message, "field": field}
    if problems:
        error["problems"] = list(problems)
    return {"error": error}


def answer_to(error: Exception) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Status, headers and body for what was raised. An unforeseen error is a 500 without its message."""
    if isinstance(error, RefusedError):
        headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
        return error.status, headers, body(error.code, str(error), error.field)
    if isinstance(error, FilterError):
        return 400, {}, body(INVALID, str(error), error.field)
    known = _as_user_error(error)
    if known is None:
        return 500, {}, body("internal", "an error inside the daemon; its log says more")
    status = next(status for kind, status in _STATUS.items() if isinstance(known, kind))
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)} if status == 503 else {}
    return status, headers, body(known.code, str(known), None, known.problems)


def error_from(status: int, answer: object) -> Exception:
    """What the daemon's Backend raised, from the body of its answer."""
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return UserError(f"the daemon answered with status {status} and no reason")
    code, message, field = error.get("code"), str(error.get("message")), error.get("field")
    if code == INVALID:
        return FilterError(str(field), message)
    problems = tuple(str(problem) for problem in error.get("problems", ()))
    return _BY_CODE.get(str(code), UserError)(message, problems=problems)


def _as_user_error(error: Exception) -> UserError | None:
    """Errors of the store in the words of the commands."""
    if isinstance(error, UserError):
        return error
    if isinstance(error, PlaceNotFoundError):
        return NotFoundError(str(error))
    if isinstance(error, ModelLoadingError):
        return ModelStillLoadingError(str(error))
    if isinstance(error, ModelError):
        return ModelUnavailableError(str(error))
    if isinstance(error, StoreError):
        return StoreUnavailableError(str(error))
    return None
