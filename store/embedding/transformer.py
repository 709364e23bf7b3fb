"""The loaded embedding model. The only door to sentence-transformers and torch.

What must stay true: every encoding runs on one long-lived thread, because torch and its allocator keep a pool
for every thread that ever asked (FAULTS E9), and a waiting query goes before the next batch of documents; no
text is ever truncated; nothing is printed and nothing is fetched (FAULTS E4, E10).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from ragd.chunkers.tokens import TokenCounter, without_surrogates
from ragd.store.embedding.hashing import unit
from ragd.store.embedding.limits import pieces_that_fit, refuse_too_long
from ragd.store.embedding.model_files import ModelFiles
from ragd.store.errors import ModelError
from ragd.store.turns import Turns
from ragd.store.types import ModelIdentity, Vectors

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_QUIET = {
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
}
_PROBES = (
    "The quick brown fox, 3.14!",
    "UPPER lower Ünïcödé naïve",
    "中文 テスト 한국어",
    "x" * 40,
    "a_b-c/d\t\n e  f",
    "🙂",
)
_MEMORY_SIGNS = ("out of memory", "can't allocate memory", "not enough memory", "cannot allocate memory")


class TransformerEmbedder:
    """An `Embedder`. Loads in the constructor (seconds); make it in a background thread (`slot.py`)."""

    def __init__(
        self,
        files: ModelFiles,
        identity: ModelIdentity,
        counter: TokenCounter,
        *,
        threads: int | None = None,
        device: str = "cpu",
    ) -> None:
        self._identity = identity
        self._counter = counter
        self._turns = Turns()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedder")
        try:
            self._model: SentenceTransformer = self._thread.submit(_load, files, device, threads).result()
            self._check_loaded()
        except BaseException:
            self._thread.shutdown()
            raise

    @property
    def identity(self) -> ModelIdentity:
        return self._identity

    @property
    def counter(self) -> TokenCounter:
        return self._counter

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self._identity.dimension), dtype=np.float32)
        prompted = [without_surrogates(self._identity.document_prompt + text) for text in texts]
        refuse_too_long(prompted, self._counter, self._identity.max_tokens)
        with self._turns.bulk():
            return self._encode(prompted)

    def embed_query(self, text: str) -> Vectors:
        prompt = self._identity.query_prompt
        pieces = pieces_that_fit(text, prompt, self._counter, self._identity.max_tokens)
        prompted = [without_surrogates(prompt + piece) for piece in pieces]
        with self._turns.question():
            return unit(self._encode(prompted).mean(axis=0, keepdims=True))

    def close(self) -> None:
        """End the thread after what it is doing. Idempotent."""
        self._thread.shutdown()

    def _encode(self, texts: list[str]) -> Vectors:
        return self._thread.submit(self._encode_here, texts).result()

    def _encode_here(self, texts: list[str]) -> Vectors:
        try:
            vectors = self._model.encode(
                texts, prompt="", batch_size=len(texts), show_progress_bar=False, normalize_embeddings=True
            )
        except RuntimeError as error:
            if is_out_of_memory(error):
                raise MemoryError(str(error)) from error
            raise
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def _check_loaded(self) -> None:
        """The files were read as the model itself reads them: same vector length, same limit, same tokens."""
        name = self._identity.name
        probe = self._encode(["probe"])
        if probe.shape[1] != self._identity.dimension:
            raise ModelError(f"embedding model {name} gives {probe.shape[1]} numbers, not {self._identity.dimension}")
        limit = self._model.max_seq_length
        if limit is not None and limit < self._identity.max_tokens:
            raise ModelError(f"embedding model {name} takes {limit} tokens, not {self._identity.max_tokens}")
        counted = [tokens + self._counter.special_tokens for tokens in self._counter.count_many(_PROBES)]
        if counted != _tokens_of(self._model, _PROBES, self._counter.special_tokens):
            raise ModelError(f"embedding model {name}: its tokenizer.json does not split texts as the model does")


def is_out_of_memory(error: BaseException) -> bool:
    """Torch has no one error for it: the CPU allocator and some backends raise a plain RuntimeError."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _MEMORY_SIGNS)


def _load(files: ModelFiles, device: str, threads: int | None) -> SentenceTransformer:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import torch
        from safetensors import SafetensorError
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging
    except ImportError as error:
        raise ModelError(f"sentence-transformers cannot be imported: {error}") from error

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        model = SentenceTransformer(
            str(files.folder),
            device=device,
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True, "dtype": torch.float32},
        )
    except (OSError, ValueError, RuntimeError, KeyError, ImportError, SafetensorError) as error:
        if is_out_of_memory(error):
            raise ModelError(f"embedding model {files.name}: not enough memory to load it") from error
        raise ModelError(f"embedding model {files.name} in {files.folder} cannot be loaded: {error}") from error
    model.eval()
    return model


def _tokens_of(model: SentenceTransformer, texts: Sequence[str], special_tokens: int) -> list[int]:
    """Tokens as the model's own first module counts them, with `special_tokens` around each."""
    first: Any = model[0]
    if type(first).__name__ == "StaticEmbedding":  # adds none itself: a count with them is on the safe side
        encoded = first.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [len(encoding.ids) + special_tokens for encoding in encoded]
    return [len(first.tokenizer(text)["input_ids"]) for text in texts]
