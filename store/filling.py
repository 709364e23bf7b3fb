"""Texts to vectors in the cache, batch by batch.

What must stay true: a batch is in the cache before the next one is embedded, so a kill costs one batch at
most; no text is embedded twice; a text that cannot be embedded is reported and stops no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ragd.store.errors import InterruptedCommitError, ModelError, StoreError
from ragd.store.types import Embedder, Vectors
from ragd.store.vector_cache import ModelVectors, usable

_TEXTS_A_BATCH = 256
_BUSY_SHARE = 4
_FAILURES_IN_A_ROW = 16
"""After so many texts failed alone with no success between them, it is not the texts: the rest is not
tried."""


def _never() -> bool:
    return False


def _nothing(_: object, __: object) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Pace:
    """How embedding shares the machine."""

    batch_tokens: int
    """Tokens of one batch, padding included."""
    queries_waiting: Callable[[], bool] = _never
    """While true, batches are a quarter of that."""
    stop: Callable[[], bool] = _never
    """Asked between batches; true ends the commit with InterruptedCommitError before anything changed."""
    on_batch: Callable[[int, int], None] = _nothing
    """Called with texts and tokens after each batch."""


@dataclass(frozen=True, slots=True)
class Text:
    """What the model gets, and how many tokens that is."""

    embedded: str
    tokens: int


@dataclass(slots=True)
class Filled:
    """`failed` maps the hash of a text without a vector to the error."""

    texts: int = 0
    tokens: int = 0
    seconds: float = 0.0
    failed: dict[bytes, str] = field(default_factory=dict)


def fill(
    cache: ModelVectors,
    embedder: Embedder | None,
    texts: Mapping[bytes, Text],
    pace: Pace,
    steps: Callable[[str], None],
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> Filled:
    """Give every text a vector in the cache. Without an embedder, texts that have none are failures."""
    filled = Filled()
    missing = cache.missing(list(texts))
    if embedder is None:
        filled.failed = dict.fromkeys(missing, "the embedding model is not loaded")
        return filled
    # Longest first: what is too much for the memory shows at once, and a batch holds texts of like length.
    waiting = sorted(missing, key=lambda key: (-texts[key].tokens, key))
    parts: list[list[bytes]] = []
    limit = _TEXTS_A_BATCH
    in_a_row = 0
    while parts or waiting:
        if pace.stop():
            raise InterruptedCommitError("asked to stop while texts were being embedded")
        if not parts:
            size = min(limit, batch_size(texts, waiting, pace))
            parts.append(waiting[:size])
            del waiting[:size]
        batch, began = parts.pop(), clock()
        if len(batch) > limit:  # too many since it was cut
            parts += [batch[limit:], batch[:limit]]
            continue
        try:
            vectors, error = _embed(embedder, batch, texts, cache.dimension)
        finally:
            filled.seconds += clock() - began
        if error is not None and len(batch) > 1:
            # Halve until it fits, or until the text that cannot be embedded stands alone.
            half = len(batch) // 2
            parts += [batch[half:], batch[:half]]
            if isinstance(error, MemoryError):
                limit = half
            continue
        good = usable(vectors)
        done = [key for key, is_good in zip(batch, good, strict=True) if is_good]
        tokens = sum(texts[key].tokens for key in done)
        if done:
            cache.put_many(done, vectors[good])
        filled.texts += len(done)
        filled.tokens += tokens
        message = "the model gave no usable vector for it" if error is None else f"{type(error).__name__}: {error}"
        filled.failed.update((key, message) for key, is_good in zip(batch, good, strict=True) if not is_good)
        in_a_row = 0 if done else in_a_row + len(batch)
        pace.on_batch(len(done), tokens)
        steps("fill batch")
        if in_a_row >= _FAILURES_IN_A_ROW:
            rest = [key for part in parts for key in part] + waiting
            filled.failed.update(dict.fromkeys(rest, f"not tried after {in_a_row} failures in a row: {message}"))
            break
    return filled


def _embed(
    embedder: Embedder, batch: list[bytes], texts: Mapping[bytes, Text], dimension: int
) -> tuple[Vectors, Exception | None]:
    """The vectors, or rows of NaN and what the model raised over these texts."""
    try:
        found = np.asarray(embedder.embed_documents([texts[key].embedded for key in batch]), dtype=np.float32)
    except (ModelError, StoreError):
        raise  # the model cannot be used at all: no fault of these texts
    except Exception as error:  # noqa: BLE001 - whatever a model raises over a text is that text's failure
        return np.full((len(batch), dimension), np.nan, dtype=np.float32), error
    if found.shape != (len(batch), dimension):
        raise ModelError(f"the model gave {found.shape} for {len(batch)} texts of dimension {dimension}")
    return found, None


def batch_size(texts: Mapping[bytes, Text], waiting: list[bytes], pace: Pace) -> int:
    """How many of the waiting texts (longest first) go into the next batch: padding counts, one always
    goes."""
    tokens = pace.batch_tokens // (_BUSY_SHARE if pace.queries_waiting() else 1)
    return max(1, min(len(waiting), tokens // max(1, texts[waiting[0]].tokens)))
