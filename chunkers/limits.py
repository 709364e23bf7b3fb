"""The token limits of one file: what its chunks aim at and what they never exceed.

What must stay true: instruction + embedded text + special tokens of any chunk is at most the model's limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragd.chunkers.records import CutSettings, ModelBudget
from ragd.chunkers.tokens import TokenCounter

LEAST_ROOM_TOKENS = 5
"""One character may take as many in a tokenizer that falls back to bytes."""
_TARGET_SHARE = 0.8
"""Share of the model's room a chunk aims at: the rest lets atoms stay whole and overlap stand in front."""


@dataclass(frozen=True, slots=True)
class Limits:
    """All in tokens of the embedding model, special tokens and instruction already taken off."""

    target_tokens: int
    """What prefix and body aim at together."""
    ceiling_tokens: int
    """What prefix, overlap and body never exceed together, but for a single character that takes more."""
    prefix_tokens: int
    """Most that title and section path may take: a quarter of the ceiling."""
    overlap_tokens: int
    reserved_tokens: int
    """Tokens of instruction and special tokens, which every chunk pays."""
    with_prefix: bool = True


def limits_of(settings: CutSettings, counter: TokenCounter, budget: ModelBudget) -> Limits:
    """The limits in force; ValueError if instruction and special tokens leave no room for text."""
    reserved = counter.special_tokens + (counter.count(budget.instruction) if budget.instruction else 0)
    room = budget.max_tokens - reserved
    if room < LEAST_ROOM_TOKENS:
        raise ValueError(
            f"the model takes {budget.max_tokens} tokens and {reserved} of them go to its instruction and special"
            f" tokens: no room is left for text"
        )
    ceiling = max(1, min(room, settings.max_tokens))
    target = max(1, min(settings.target_tokens, int(_TARGET_SHARE * room), ceiling))
    return Limits(
        target_tokens=target,
        ceiling_tokens=ceiling,
        prefix_tokens=ceiling // 4,
        overlap_tokens=int(settings.overlap_ratio * target),
        reserved_tokens=reserved,
        with_prefix=settings.prefix,
    )
