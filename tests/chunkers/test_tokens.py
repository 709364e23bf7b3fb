"""Counters: never truncating, never raising, and equal to what the model gets."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragd.chunkers.tokens import ModelTokenCounter, PlainCounter, TiktokenCounter, TokenCounter

_HOSTILE = ["<|endoftext|> and [SEP] [CLS] <s>", "", " \n\t", "\ud800 lone", "🧪👩🏽‍🔬" * 50, "a" * 5000, "\x00\x01"]


@pytest.fixture(params=["plain", "model", "tiktoken"])
def counter(request: pytest.FixtureRequest, model_counter: ModelTokenCounter) -> TokenCounter:
    counters: dict[str, TokenCounter] = {"plain": PlainCounter(), "model": model_counter}
    return counters.get(request.param) or TiktokenCounter()


def test_fault_a6_special_token_spellings_are_counted_as_text(counter: TokenCounter) -> None:
    assert counter.count_many(_HOSTILE) == [counter.count(text) for text in _HOSTILE]
    assert counter.count("The end mark is <|endoftext|>.") > 4


def test_offsets_are_ascending_and_inside_the_text(counter: TokenCounter) -> None:
    text = "Hello wörld, 温度 🧪! " * 20
    offsets = counter.offsets(text)
    assert len(offsets) == counter.count(text)
    assert offsets == sorted(offsets)
    assert all(0 <= start <= end <= len(text) for start, end in offsets)


def test_the_models_counter_does_not_truncate_and_knows_its_special_tokens(model_counter: ModelTokenCounter) -> None:
    assert model_counter.count("word " * 1000) == 1000
    assert model_counter.special_tokens == 2


def test_fingerprints_differ_between_tokenizers(model_counter: ModelTokenCounter) -> None:
    assert len({model_counter.fingerprint, PlainCounter().fingerprint, TiktokenCounter().fingerprint}) == 3


def test_an_unknown_encoding_is_named_with_what_there_is() -> None:
    with pytest.raises(ValueError, match="cl100k_base"):
        TiktokenCounter("no_such_base")


@pytest.mark.model
@pytest.mark.timeout(180)
def test_counts_equal_what_sentence_transformers_gives_the_model(
    tools: SimpleNamespace, model_counter: ModelTokenCounter
) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tools.model_folder()), device="cpu")
    tokenizer = model.tokenizer

    @settings(max_examples=80, deadline=None)
    @given(st.one_of(st.sampled_from([text for text in _HOSTILE if "\ud800" not in text]), st.text(max_size=120)))
    def agrees(text: str) -> None:
        seen = len(tokenizer(text, truncation=False)["input_ids"])
        assert model_counter.count(text) + model_counter.special_tokens == seen
        fed = model.tokenize([text])["input_ids"].shape[1]
        assert min(seen, model.max_seq_length) == fed

    agrees()
