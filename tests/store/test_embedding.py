"""The embedders, their limits, and the slot the model is loaded into."""

from __future__ import annotations

import dataclasses
import gc
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from ragd.chunkers.tokens import ModelTokenCounter, PlainCounter
from ragd.store.embedding.hashing import HashEmbedder
from ragd.store.embedding.limits import pieces_that_fit, refuse_too_long
from ragd.store.embedding.model_files import ModelFiles
from ragd.store.embedding.slot import ModelSlot, SlotState, open_model
from ragd.store.embedding.transformer import TransformerEmbedder
from ragd.store.errors import ModelError, ModelLoadingError
from ragd.store.types import Embedder

CAT, CATS, ENGINE = "the cat sat on the mat", "a cat on the mat, two cats", "a diesel engine has no spark plugs"


# --- laws of every embedder ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> Iterator[Embedder]:
    embedder = open_model("all-MiniLM-L6-v2", threads=1).load()
    yield embedder
    embedder.close()  # type: ignore[attr-defined]  # of this kind only


@pytest.fixture(params=["hash", pytest.param("real", marks=pytest.mark.model)])
def embedder(request: pytest.FixtureRequest) -> Any:
    return HashEmbedder() if request.param == "hash" else request.getfixturevalue("real")


@pytest.mark.timeout(120)
def test_law_one_unit_vector_a_text_in_order(embedder: Embedder) -> None:
    texts = [CAT, "", ENGINE, "x", CATS]
    vectors = embedder.embed_documents(texts)
    assert vectors.shape == (5, embedder.identity.dimension)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5), abs=1e-5)
    alone = np.concatenate([embedder.embed_documents([text]) for text in texts])
    assert np.abs(vectors - alone).max() < 1e-4
    assert embedder.embed_documents([]).shape == (0, embedder.identity.dimension)


def test_law_near_texts_are_near(embedder: Embedder) -> None:
    cat, cats, engine = embedder.embed_documents([CAT, CATS, ENGINE])
    assert cat @ cats > cat @ engine + 0.1
    query = embedder.embed_query("cat mat")
    assert query.shape == (1, embedder.identity.dimension)
    assert float(query[0] @ cat) > float(query[0] @ engine)


def test_fault_e3_no_text_is_cut_off(embedder: Embedder) -> None:
    room = embedder.identity.max_tokens - embedder.counter.special_tokens
    whole = " ".join(["word"] * (room - 1) + ["engine"])
    assert embedder.counter.count(whole) == room
    assert not np.allclose(embedder.embed_documents([whole]), embedder.embed_documents([whole[:-7]]))
    with pytest.raises(ValueError, match=f"{embedder.identity.max_tokens + 1} tokens"):
        embedder.embed_documents([CAT, whole + " more"])


def test_a_question_of_many_pages_is_read_to_its_end(embedder: Embedder) -> None:
    long = " ".join(["cat"] * 600)
    assert not np.allclose(embedder.embed_query(long + " engine" * 200), embedder.embed_query(long))
    assert np.linalg.norm(embedder.embed_query(long)) == pytest.approx(1.0, abs=1e-5)


def test_hostile_text_is_embedded(embedder: Embedder) -> None:
    vectors = embedder.embed_documents(["\ud800 lone", "\x00", "[SEP] [CLS] <|endoftext|>", "🙂" * 20, "\n\t "])
    assert np.isfinite(vectors).all()
    assert np.isfinite(embedder.embed_query("\udfff")).all()


# --- the hash embedder -----------------------------------------------------------------------------------


def test_equal_settings_give_equal_vectors_and_names_tell_them_apart() -> None:
    first, second = HashEmbedder(32), HashEmbedder(32)
    assert first.identity == second.identity
    assert np.array_equal(first.embed_documents([CAT]), second.embed_documents([CAT]))
    others = [HashEmbedder(64), HashEmbedder(32, "seed"), HashEmbedder(32, query_prompt="q: ")]
    assert len({first.identity.fingerprint, *(other.identity.fingerprint for other in others)}) == 4
    assert not np.array_equal(others[1].embed_documents([CAT]), first.embed_documents([CAT]))
    assert [other.identity.name for other in others] == ["hash:64", "hash:32:seed", "hash:32"]


def test_a_known_vector_stays_what_it_is() -> None:
    vector = HashEmbedder(8).embed_documents(["alpha beta"])[0]
    assert vector.tolist() == pytest.approx(KNOWN, abs=1e-6)


KNOWN = [0.0488386, 0.0610483, -0.7325795, -0.0122097, -0.0610483, -0.0488386, 0.6715311, 0.0]


def test_fault_e6_prompts_are_put_before_documents_and_queries() -> None:
    class Recording(HashEmbedder):
        def _embed(self, texts: Any) -> Any:
            seen.extend(texts)
            return super()._embed(texts)

    seen: list[str] = []
    embedder = Recording(query_prompt="query: ", document_prompt="passage: ")
    embedder.embed_documents(["one", "two"])
    embedder.embed_query("three")
    assert seen == ["passage: one", "passage: two", "query: three"]


# --- limits ----------------------------------------------------------------------------------------------


def test_pieces_join_to_the_text_and_fit() -> None:
    counter = PlainCounter(special_tokens=2)
    text = " ".join(f"word{number}," for number in range(300))
    pieces = pieces_that_fit(text, "query: ", counter, 64)
    assert "".join(pieces) == text
    assert len(pieces) > 5
    refuse_too_long(["query: " + piece for piece in pieces], counter, 64)
    assert pieces_that_fit("short", "query: ", counter, 64) == ["short"]


def test_pieces_end_even_where_nothing_fits() -> None:
    assert "".join(pieces_that_fit("abcdef", "a long prompt", PlainCounter(special_tokens=9), 4)) == "abcdef"


# --- the slot --------------------------------------------------------------------------------------------


def test_the_slot_is_loading_until_the_model_is_in() -> None:
    go = threading.Event()
    made = HashEmbedder()

    def load() -> Embedder:
        go.wait(10)
        return made

    slot = ModelSlot(load)
    with pytest.raises(ModelLoadingError):
        slot.get()
    slot.start()
    assert slot.state is SlotState.LOADING
    assert slot.wait(0.01) is SlotState.LOADING
    go.set()
    assert slot.wait(10) is SlotState.READY
    assert slot.get() is made
    assert slot.reason == ""


@pytest.mark.parametrize("error", [ModelError("no weights here"), RuntimeError("no weights here"), MemoryError("none")])
def test_a_model_that_cannot_be_loaded_gives_its_reason_to_all_who_ask(error: Exception) -> None:
    def load() -> Embedder:
        raise error

    slot = ModelSlot(load)
    slot.start()
    assert slot.wait(10) is SlotState.FAILED
    for _ in range(2):
        with pytest.raises(ModelError, match=str(error)) as caught:
            slot.get()
        assert not isinstance(caught.value, ModelLoadingError)
    assert str(error) in slot.reason


def test_the_test_embedder_is_opened_by_name() -> None:
    opened = open_model("hash:32:seed", query_prompt="q: ")
    assert opened.tokenizer_json is None
    assert opened.identity == HashEmbedder(32, "seed", query_prompt="q: ").identity
    assert opened.load().embed_query("x").shape == (1, 32)
    assert opened.counter.special_tokens == 2
    for name in ("hash:", "hash:0", "hash:x", "hash:99999"):
        with pytest.raises(ModelError, match="DIMENSION"):
            open_model(name)


def test_the_counter_is_known_before_the_weights_are_in() -> None:
    opened = open_model("all-MiniLM-L6-v2")
    assert opened.tokenizer_json is not None
    counter = ModelTokenCounter(opened.tokenizer_json)
    assert counter.fingerprint == opened.counter.fingerprint
    assert opened.counter.count("word " * 500) == 500


# --- the real model --------------------------------------------------------------------------------------


@pytest.mark.model
def test_vectors_are_those_of_sentence_transformers(real: Embedder) -> None:
    from sentence_transformers import SentenceTransformer

    from ragd.store.embedding.model_files import find_model

    model = SentenceTransformer(str(find_model("all-MiniLM-L6-v2").folder), device="cpu")
    expected = model.encode([CAT, ENGINE], normalize_embeddings=True, show_progress_bar=False)
    assert np.abs(real.embed_documents([CAT, ENGINE]) - expected).max() < 1e-5


@pytest.mark.model
def test_tokens_are_counted_as_the_model_reads_them(real: Any) -> None:
    texts = [CAT, "Ünïcödé 中文 🙂", "a" * 90, "def f(x): return x**2  # [MASK]", "\n\n  \t"]
    tokenizer = real._model[0].tokenizer
    counted = [count + real.counter.special_tokens for count in real.counter.count_many(texts)]
    assert counted == [len(tokenizer(text)["input_ids"]) for text in texts]


@pytest.mark.model
def test_a_query_goes_before_the_next_batch_of_documents(real: Any) -> None:
    order: list[str] = []
    encode = real._encode

    def recording(texts: list[str]) -> Any:
        vectors = encode(texts)
        order.append("query" if texts == ["question"] else "documents")
        return vectors

    real._encode = recording
    try:
        text = " ".join(["word"] * 200)
        threads = [threading.Thread(target=real.embed_documents, args=([text] * 4,)) for _ in range(6)]
        for thread in threads:
            thread.start()
        while not order:
            time.sleep(0.005)
        real.embed_query("question")
        for thread in threads:
            thread.join()
    finally:
        del real._encode
    assert order.index("query") <= 2
    assert len(order) == 7


@pytest.mark.model
def test_threads_get_the_vectors_of_their_own_texts(real: Embedder) -> None:
    texts = [f"text number {number} about {word}" for number, word in enumerate(("tea", "rain", "iron", "music") * 3)]
    expected = [real.embed_query(text) for text in texts]
    results: dict[int, Any] = {}

    def ask(number: int) -> None:
        results[number] = real.embed_query(texts[number])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(float(np.abs(results[number] - expected[number]).max()) for number in range(len(texts))) < 1e-5


@pytest.mark.model
@pytest.mark.parametrize("message", ["DefaultCPUAllocator: can't allocate memory: you tried", "CUDA out of memory."])
def test_fault_e8_no_memory_for_a_batch_is_a_memory_error(
    real: Any, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    def encode(*_: Any, **__: Any) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr(real._model, "encode", encode)
    with pytest.raises(MemoryError):
        real.embed_documents([CAT])
    monkeypatch.undo()
    assert real.embed_documents([CAT]).shape == (1, 384)


@pytest.mark.model
@pytest.mark.timeout(240)
def test_fault_e9_memory_does_not_grow_with_use(real: Embedder) -> None:
    """1,000 calls of random length from changing threads: the second half adds less than 5 %."""
    random = np.random.default_rng(1)
    process = psutil.Process()
    sizes = []

    def work() -> None:
        for length in random.integers(1, 12, size=50):
            real.embed_documents([" ".join(["memory"] * int(length))])

    for _ in range(2):
        for _ in range(10):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        gc.collect()
        sizes.append(process.memory_info().rss)
    assert sizes[1] < 1.05 * sizes[0], sizes


@pytest.mark.model
@pytest.mark.timeout(180)
def test_fault_e4_e10_loading_and_embedding_are_silent_and_offline(tmp_path: Path) -> None:
    """No HOME, another working folder, no connection: as a system unit starts (the model of the package)."""
    script = textwrap.dedent(
        """
        import socket
        tried = []
        connect = socket.socket.connect
        def remember(self, address):
            tried.append(address)
            return connect(self, address)
        socket.socket.connect = remember
        from ragd.store.embedding.slot import ModelSlot, open_model
        slot = ModelSlot(open_model("all-MiniLM-L6-v2").load)
        slot.start()
        slot.wait()
        assert slot.get().embed_documents(["a text", "another"]).shape == (2, 384)
        assert tried == [], tried
        """
    )
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", script],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of 32 dimensions and 64 positions, saved by sentence-transformers."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "engine", *"abcdefghijklmnopqrstuvwxyz"]
    words += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    (folder / "vocab.txt").write_text("\n".join(words))
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder / "bert")
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    transformer = Transformer(str(folder / "bert"))
    SentenceTransformer(modules=[transformer, Pooling(32)], device="cpu").save(str(folder / "model"))
    return folder / "model"


@pytest.mark.model
def test_another_model_from_a_folder(tiny: Path) -> None:
    opened = open_model(str(tiny), query_prompt="cat ")
    assert (opened.identity.dimension, opened.identity.max_tokens) == (32, 64)
    embedder = opened.load()
    vectors = embedder.embed_documents(["cat", "engine", "cat cat"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    assert np.abs(embedder.embed_query("engine") - embedder.embed_documents(["cat engine"])).max() < 1e-5
    with pytest.raises(ValueError, match="65 tokens"):
        embedder.embed_documents(["cat " * 63])
    embedder.close()  # type: ignore[attr-defined]  # of this kind only


@pytest.mark.model
def test_torn_weights_are_a_model_error(tiny: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(tiny, tmp_path / "copy"))
    (copy / "model.safetensors").write_bytes(b"\x00" * 100)
    with pytest.raises(ModelError, match="cannot be loaded"):
        open_model(str(copy)).load()


@pytest.mark.model
def test_files_that_tell_another_vector_length_are_refused(tiny: Path) -> None:
    opened = open_model(str(tiny))
    wrong = dataclasses.replace(opened.identity, dimension=33)
    with pytest.raises(ModelError, match="32 numbers, not 33"):
        TransformerEmbedder(ModelFiles("tiny", tiny), wrong, opened.counter)
    with pytest.raises(ModelError, match="does not split texts"):
        TransformerEmbedder(ModelFiles("tiny", tiny), opened.identity, PlainCounter(special_tokens=2))
