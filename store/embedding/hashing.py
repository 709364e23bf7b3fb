"""An embedder without a model: deterministic, fast, and near for texts that share words. For tests and
trials.

What must stay true: it keeps every law of `Embedder`, so that what passes with it passes with a real model;
equal text, dimension and seed give equal vectors on any machine.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ragd.chunkers.tokens import PlainCounter, TokenCounter
from ragd.store.embedding.limits import pieces_that_fit, refuse_too_long
from ragd.store.types import ModelIdentity, Vectors

_WORD = re.compile(r"\w+")
_WORD_WEIGHT = 3.0


class HashEmbedder:
    """Words and their letter trigrams, hashed to signed dimensions (feature hashing, Weinberger et al.
    2009)."""

    def __init__(
        self,
        dimension: int = 64,
        seed: str = "",
        *,
        query_prompt: str = "",
        document_prompt: str = "",
        max_tokens: int = 256,
    ) -> None:
        self._dimension = dimension
        self._seed = seed
        self._identity = hash_identity(
            dimension, seed, query_prompt=query_prompt, document_prompt=document_prompt, max_tokens=max_tokens
        )
        self._counter = PlainCounter(special_tokens=2)

    @property
    def identity(self) -> ModelIdentity:
        return self._identity

    @property
    def counter(self) -> TokenCounter:
        return self._counter

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        prompted = [self._identity.document_prompt + text for text in texts]
        refuse_too_long(prompted, self._counter, self._identity.max_tokens)
        return self._embed(prompted)

    def embed_query(self, text: str) -> Vectors:
        prompt = self._identity.query_prompt
        pieces = pieces_that_fit(text, prompt, self._counter, self._identity.max_tokens)
        return unit(self._embed([prompt + piece for piece in pieces]).mean(axis=0, keepdims=True))

    def _embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in _WORD.findall(text.lower()):
                for place, weight in _features(word, self._dimension, self._seed):
                    vectors[row, place] += weight
        return unit(vectors)


def hash_identity(
    dimension: int,
    seed: str = "",
    *,
    query_prompt: str = "",
    document_prompt: str = "",
    max_tokens: int = 256,
) -> ModelIdentity:
    """The identity of the HashEmbedder with these settings; `hash:64`, or `hash:64:seed`, is its name."""
    parts = ("hash-1", str(dimension), seed, query_prompt, document_prompt, str(max_tokens))
    fingerprint = hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
    name = f"hash:{dimension}" + (f":{seed}" if seed else "")
    return ModelIdentity(name, fingerprint, dimension, max_tokens, query_prompt, document_prompt)


def unit(vectors: npt.NDArray[np.float32]) -> Vectors:
    """Rows scaled to length 1; a row of zeros becomes the first axis."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = vectors / np.where(lengths > 0, lengths, 1.0)
    scaled[lengths[:, 0] == 0, 0] = 1.0
    return np.ascontiguousarray(scaled, dtype=np.float32)


@lru_cache(maxsize=1 << 15)
def _features(word: str, dimension: int, seed: str) -> tuple[tuple[int, float], ...]:
    marked = f"<{word}>"
    trigrams = [marked[start : start + 3] for start in range(len(marked) - 2)]
    return tuple(_place(feature, dimension, seed, weight) for feature, weight in _weighted(word, trigrams))


def _weighted(word: str, trigrams: list[str]) -> list[tuple[str, float]]:
    return [(word, _WORD_WEIGHT), *((trigram, 1.0 / len(trigrams)) for trigram in trigrams)]


def _place(feature: str, dimension: int, seed: str, weight: float) -> tuple[int, float]:
    data = f"{seed}\0{feature}".encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")
    return (number >> 1) % dimension, weight if number & 1 else -weight
