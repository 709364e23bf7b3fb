"""Errors that end a command, with the exit code each one means (docs: operations.md).

What must stay true: a UserError is printed as its message alone, never with a traceback.
"""

from __future__ import annotations

from collections.abc import Sequence


class UserError(Exception):
    """Something a person can mend. Subclasses carry the exit code and the code word of the HTTP answer."""

    exit_code = 1
    code = "error"

    def __init__(self, message: str, *, problems: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class UsageError(UserError):
    """The configuration or the command line is wrong; `problems` holds every problem at once."""

    exit_code = 2
    code = "usage"


class StateLockedError(UserError):
    """Another daemon holds the state folder."""

    exit_code = 4
    code = "locked"


class NoDaemonError(UserError):
    """No daemon is running, and the command needs one."""

    exit_code = 5
    code = "no_daemon"


class ModelUnavailableError(UserError):
    """The embedding model can't be loaded."""

    exit_code = 6
    code = "model"


class ModelStillLoadingError(ModelUnavailableError):
    """The embedding model is still loading (or the index is being rebuilt for it); ask again in a moment."""

    code = "model_loading"


class StoreUnavailableError(UserError):
    """The store is damaged or can't be reached."""

    exit_code = 7
    code = "store"


class AddressInUseError(UserError):
    """The address or port is in use."""

    exit_code = 8
    code = "address_in_use"


class NotFoundError(UserError):
    """Not found, or not visible: the same answer for both."""

    exit_code = 9
    code = "not_found"


EXIT_SOME_FAILED = 3
"""Done, but some files failed (sync), or something is out of step (verify)."""
