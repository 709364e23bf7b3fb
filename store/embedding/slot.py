"""The place the embedding model is in: being loaded, ready, or failed with its reason.

What must stay true: identity and tokenizer are known at once, without torch, so that cutting, planning and
lexical search start before the weights are in; nobody who asks waits for the loading unless they say so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ragd.chunkers.tokens import ModelTokenCounter, TokenCounter
from ragd.store.embedding.hashing import HashEmbedder
from ragd.store.embedding.identity import read_identity, tokenizer_json
from ragd.store.embedding.model_files import Memory, find_model
from ragd.store.errors import ModelError, ModelLoadingError
from ragd.store.types import Embedder, ModelIdentity


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """A model that is found and known, its weights not loaded yet."""

    identity: ModelIdentity
    tokenizer_json: str | None
    """For the processes that cut files; None for the test embedder, whose counter is the plain one."""
    counter: TokenCounter
    load: Callable[[], Embedder]
    """Slow. Raises ModelError."""


class SlotState(Enum):
    """What the slot holds."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


def open_model(
    name: str,
    *,
    offline: bool = True,
    cache: Path | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    threads: int | None = None,
    device: str = "cpu",
    memory: Memory | None = None,
) -> OpenedModel:
    """Find the model called `name` (`hash:64` or `hash:64:seed` is the test embedder) and read what it is.
    Imports no torch. May download, which takes minutes, when `offline` is False. Raises ModelError."""
    if name.startswith("hash:"):
        return _open_hash(name, query_prompt or "", document_prompt or "")
    files = find_model(name, offline=offline, cache=cache, memory=memory)
    identity = read_identity(files, query_prompt=query_prompt, document_prompt=document_prompt, memory=memory)
    text = tokenizer_json(files)
    counter = ModelTokenCounter(text)

    def load() -> Embedder:
        from ragd.store.embedding.transformer import TransformerEmbedder

        return TransformerEmbedder(files, identity, counter, threads=threads, device=device)

    return OpenedModel(identity, text, counter, load)


class ModelSlot:
    """Loads in a background thread once started. Thread-safe."""

    def __init__(self, load: Callable[[], Embedder]) -> None:
        self._load = load
        self._done = threading.Event()
        self._embedder: Embedder | None = None
        self._reason = ""
        self._thread = threading.Thread(target=self._run, name="model-loader", daemon=True)

    def start(self) -> None:
        """Begin loading. Call once."""
        self._thread.start()

    @property
    def state(self) -> SlotState:
        if not self._done.is_set():
            return SlotState.LOADING
        return SlotState.READY if self._embedder is not None else SlotState.FAILED

    @property
    def reason(self) -> str:
        """Why loading failed; empty otherwise."""
        return self._reason if self._done.is_set() else ""

    def get(self) -> Embedder:
        """The embedder. Raises ModelLoadingError while it loads, ModelError with the reason when it
        failed."""
        if not self._done.is_set():
            raise ModelLoadingError("the embedding model is still loading; ask again in a moment")
        if self._embedder is None:
            raise ModelError(self._reason)
        return self._embedder

    def wait(self, timeout_s: float | None = None) -> SlotState:
        """Wait until loading has ended, for `timeout_s` seconds at most."""
        self._done.wait(timeout_s)
        return self.state

    def _run(self) -> None:
        try:
            self._embedder = self._load()
        except ModelError as error:
            self._reason = str(error)
        except Exception as error:  # noqa: BLE001 - kept, and raised by `get` to whoever asks
            self._reason = f"the embedding model cannot be loaded: {type(error).__name__}: {error}"
        finally:
            self._done.set()


def _open_hash(name: str, query_prompt: str, document_prompt: str) -> OpenedModel:
    _, size, *seed = name.split(":", 2)
    if not size.isdecimal() or not 1 <= int(size) <= 4096:
        raise ModelError(f"embedding model {name}: hash:DIMENSION, with a dimension from 1 to 4096")
    embedder: Embedder = HashEmbedder(
        int(size), "".join(seed), query_prompt=query_prompt, document_prompt=document_prompt
    )
    return OpenedModel(embedder.identity, None, embedder.counter, lambda: embedder)
