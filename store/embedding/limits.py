"""Texts against the model's limit: nothing is ever cut off in silence (FAULTS E3)."""

from __future__ import annotations

from collections.abc import Sequence

from ragd.chunkers.tokens import TokenCounter


def refuse_too_long(texts: Sequence[str], counter: TokenCounter, max_tokens: int) -> None:
    """Raises ValueError when a text, with the special tokens around it, is over `max_tokens`."""
    for position, tokens in enumerate(counter.count_many(texts)):
        total = tokens + counter.special_tokens
        if total > max_tokens:
            raise ValueError(f"text {position} of {len(texts)} has {total} tokens; the model takes {max_tokens}")


def pieces_that_fit(text: str, prompt: str, counter: TokenCounter, max_tokens: int) -> list[str]:
    """`text` in as few pieces as halving gives, each within `max_tokens` with `prompt` and special tokens;
    cut between two tokens, nothing left out. One piece in nearly every case: this is for questions somebody
    pasted a page into.
    """
    if counter.count(prompt + text) + counter.special_tokens <= max_tokens or len(text) < 2:
        return [text]
    offsets = counter.offsets(text)
    middle = offsets[len(offsets) // 2][0] if len(offsets) > 1 else len(text) // 2
    if not 0 < middle < len(text):
        middle = len(text) // 2
    return [
        piece for half in (text[:middle], text[middle:]) for piece in pieces_that_fit(half, prompt, counter, max_tokens)
    ]
