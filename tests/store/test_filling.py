"""Texts to vectors, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from store_kit import DIMENSION, Embedder

from ragd.store.errors import ModelError
from ragd.store.filling import Filled, Pace, Text, fill
from ragd.store.rows import text_hash
from ragd.store.types import Vectors
from ragd.store.vector_cache import ModelVectors, VectorCache


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[ModelVectors]:
    cache = VectorCache(tmp_path / "vectors.sqlite3", lambda: "now")
    yield cache.of("fingerprint", DIMENSION)
    cache.close()


def texts_of(*texts: str) -> dict[bytes, Text]:
    return {text_hash(text): Text(text, len(text)) for text in texts}


def run(vectors: ModelVectors, embedder: Embedder, texts: dict[bytes, Text], **pace: object) -> Filled:
    settings = {"batch_tokens": 100, **pace}
    return fill(vectors, embedder, texts, Pace(**settings), lambda _: None)  # type: ignore[arg-type]


def test_batches_hold_texts_of_like_length_within_the_tokens(vectors: ModelVectors) -> None:
    embedder = Embedder()
    filled = run(vectors, embedder, texts_of(*("x" * n for n in range(1, 31))))
    assert [len(batch) for batch in embedder.batches] == [3, 3, 4, 5, 6, 9]
    assert all(len(batch) * max(map(len, batch)) <= 100 for batch in embedder.batches)
    assert (filled.texts, filled.tokens, filled.failed) == (30, sum(range(31)), {})
    assert filled.seconds > 0


def test_a_text_longer_than_a_batch_goes_alone(vectors: ModelVectors) -> None:
    embedder = Embedder()
    assert run(vectors, embedder, texts_of("x" * 1000, "y")).texts == 2
    assert [len(batch) for batch in embedder.batches] == [1, 1]


def test_batches_are_a_quarter_while_queries_wait(vectors: ModelVectors) -> None:
    embedder = Embedder()
    waiting = iter([True] * 4)
    run(
        vectors,
        embedder,
        texts_of(*(f"{n:05}" for n in range(40))),
        queries_waiting=lambda: next(waiting, False),
    )
    assert [len(batch) for batch in embedder.batches] == [5, 5, 5, 5, 20]


def test_what_is_in_the_cache_is_not_embedded(vectors: ModelVectors) -> None:
    embedder = Embedder()
    run(vectors, embedder, texts_of("a", "b"))
    assert run(vectors, embedder, texts_of("a", "b", "c")).texts == 1
    assert embedder.embedded == {"a": 1, "b": 1, "c": 1}


def test_fault_e8_a_batch_too_large_for_the_memory_is_halved(vectors: ModelVectors) -> None:
    embedder = Embedder()
    embedder.most = 6
    filled = run(vectors, embedder, texts_of(*(f"{n:03}" for n in range(200))), batch_tokens=3 * 64)
    assert (filled.texts, filled.failed) == (200, {})
    tried = [len(batch) for batch in embedder.batches]
    assert tried[:5] == [64, 32, 16, 8, 4]
    assert max(tried[5:]) <= 8, "what was too large once is not tried again"
    assert set(embedder.embedded.values()) == {1}


def test_fault_e8_one_text_too_large_for_the_memory_is_reported(vectors: ModelVectors) -> None:
    embedder = Embedder()
    embedder.most = 0
    filled = run(vectors, embedder, texts_of("a"))
    assert filled.failed == {text_hash("a"): "MemoryError: 1"}


def test_texts_that_fail_are_found_and_the_batch_size_stays(vectors: ModelVectors) -> None:
    embedder = Embedder()
    embedder.fails = {"007", "013"}
    filled = run(vectors, embedder, texts_of(*(f"{n:03}" for n in range(100))), batch_tokens=3 * 50)
    assert set(filled.failed) == {text_hash("007"), text_hash("013")}
    assert filled.failed[text_hash("007")] == "RuntimeError: cannot embed 007"
    assert filled.texts == 98
    assert set(embedder.embedded.values()) == {1}
    assert len(embedder.batches) < 40


def test_a_model_that_fails_over_everything_is_not_asked_for_every_text(vectors: ModelVectors) -> None:
    embedder = Embedder()
    texts = texts_of(*(f"{n:03}" for n in range(1000)))
    embedder.fails = {text.embedded for text in texts.values()}
    filled = run(vectors, embedder, texts, batch_tokens=3 * 50)
    assert set(filled.failed) == set(texts)
    assert any("not tried after 16 failures" in error for error in filled.failed.values())
    assert len(embedder.batches) < 60


def test_nan_zero_and_odd_lengths_are_no_vectors(vectors: ModelVectors) -> None:
    class Odd(Embedder):
        def embed_documents(self, texts):
            found = super().embed_documents(texts)
            for place, text in enumerate(texts):
                if text == "zero":
                    found[place] = 0
                elif text == "long":
                    found[place] *= 2
                elif text == "huge":
                    found[place] = np.finfo(np.float32).max
            return found

    embedder = Odd()
    embedder.nan = {"nan"}
    filled = run(vectors, embedder, texts_of("nan", "zero", "long", "huge", "good"))
    assert set(filled.failed) == set(texts_of("nan", "zero", "long", "huge"))
    assert vectors.missing(list(texts_of("nan", "good"))) == {text_hash("nan")}


@pytest.mark.parametrize("shape", [(1, DIMENSION), (2, DIMENSION + 1)])
def test_a_wrong_shape_is_the_model_s_fault(vectors: ModelVectors, shape: tuple[int, int]) -> None:
    class Wrong(Embedder):
        def embed_documents(self, _) -> Vectors:
            return np.ones(shape, dtype=np.float32)

    with pytest.raises(ModelError, match="for 2 texts of dimension 8"):
        run(vectors, Wrong(), texts_of("a", "b"))


def test_progress_is_told_after_each_batch(vectors: ModelVectors) -> None:
    told: list[tuple[int, int]] = []
    run(
        vectors,
        Embedder(),
        texts_of("aa", "bb", "cc"),
        batch_tokens=4,
        on_batch=lambda *now: told.append(now),
    )
    assert told == [(2, 4), (1, 2)]


def test_fault_f4_a_kill_between_two_batches_loses_none_of_the_earlier(tmp_path: Path) -> None:
    embedder = Embedder()
    path = tmp_path / "vectors.sqlite3"
    cache = VectorCache(path, lambda: "now")
    count = 0

    def step(_: str) -> None:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt

    texts = texts_of(*(f"{n:03}" for n in range(50)))
    with pytest.raises(KeyboardInterrupt):
        fill(cache.of("m", DIMENSION), embedder, texts, Pace(batch_tokens=30), step)
    cache.close()
    cache = VectorCache(path, lambda: "now")
    filled = fill(cache.of("m", DIMENSION), embedder, texts, Pace(batch_tokens=30), lambda _: None)
    assert filled.texts == 20
    assert set(embedder.embedded.values()) == {1}
    cache.close()
