"""What the watcher says: look here.

What must stay true: a hint never says what happened, and nobody acts on it but by looking.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hint:
    """A place in a root. `deleted` is only evidence, for the plan, that absences were watched; `folder` says
    that a folder was meant, so that the evidence is for all that was in it."""

    root: str
    path: bytes
    deleted: bool = False
    folder: bool = False


Post = Callable[[Hint], None]
"""Called from the watcher's thread: it must only put the hint somewhere."""
