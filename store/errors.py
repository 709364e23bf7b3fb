"""Errors of this room that reach a person. The message says what happened, to which file or key, and the cure."""

from __future__ import annotations


class StoreError(Exception):
    """The store is damaged or cannot be reached."""


class LockedError(StoreError):
    """Another daemon holds the state folder."""


class InterruptedCommitError(Exception):
    """A commit was asked to stop before it changed anything (the vectors made so far are kept), or a comparison of
    index and catalog was: it begins again at the next start."""


class ModelError(Exception):
    """The embedding model cannot be loaded."""


class ModelLoadingError(ModelError):
    """The embedding model is still loading; ask again in a moment."""


class FilterError(ValueError):
    """A search filter is not one of the known ones, or its value is not usable. `field` names it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class DamagedError(StoreError):
    """A part of the store on disk (vector index, catalog, vector cache) is damaged: to be set aside and rebuilt."""


class PlaceNotFoundError(LookupError):
    """Not indexed, or not visible to who asks: the same answer for both."""
