"""Counting tokens. The only door to tiktoken, and the protocol the embedding model's own tokenizer fills.

What must stay true: a counter never truncates, never pads, never raises on any text (special-token spellings are
plain text), and counts without the special tokens the model adds around an input (`special_tokens` says how many).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class TokenCounter(Protocol):
    """Counts the tokens of plain text."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever a count could change."""

    @property
    def special_tokens(self) -> int:
        """How many tokens the model adds around every input."""

    def count(self, text: str) -> int:
        """Tokens of `text`, special tokens not included."""

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """`count` of each text, in one call."""

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Half-open character offsets of each token of `text`, ascending."""
