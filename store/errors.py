"""Errors of this room that reach a person. The message says what happened, to which file or key, and the cure."""

from __future__ import annotations


class StoreError(Exception):
    """The store is damaged or cannot be reached."""


class LockedError(StoreError):
    """Another daemon holds the state folder."""


class ModelError(Exception):
    """The embedding model cannot be loaded."""


class ModelLoadingError(ModelError):
    """The embedding model is still loading; ask again in a moment."""


class FilterError(ValueError):
    """A search filter is not one of the known ones, or its value is not usable. `field` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
