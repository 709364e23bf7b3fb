"""The embedding model as the daemon holds it: known at once, loaded when it is first needed or told to.

What must stay true: nothing waits for the weights that does not need them; a model that cannot be loaded is one
UserError with its reason, wherever it shows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ragd.chunkers.records import ModelBudget
from ragd.daemon.errors import ModelUnavailableError
from ragd.daemon.parsing.wire import CounterSpec
from ragd.store.embedding.slot import ModelSlot, OpenedModel, SlotState
from ragd.store.errors import ModelError
from ragd.store.types import Embedder

if TYPE_CHECKING:
    from ragd.store.search import Model

QUIET_S = 3.0
"""So long after the last query, embedding works in small batches."""


class HeldModel:
    """Thread-safe."""

    def __init__(self, opened: OpenedModel, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.identity = opened.identity
        self.counter = opened.counter
        self._spec = opened
        self._slot = ModelSlot(opened.load)
        self._clock = clock
        self._lock = threading.Lock()
        self._started = False
        self._asking = 0
        self._last_asked: float | None = None

    @property
    def counter_spec(self) -> CounterSpec:
        """For the processes that cut files."""
        text = self._spec.tokenizer_json
        if text is None:
            return CounterSpec("plain", special_tokens=self.counter.special_tokens)
        return CounterSpec("model", text)

    @property
    def budget(self) -> ModelBudget:
        return ModelBudget(self.identity.max_tokens, self.identity.document_prompt)

    def start(self) -> None:
        """Begin to load the weights. Idempotent."""
        with self._lock:
            if not self._started:
                self._started = True
                self._slot.start()

    def embedder(self) -> Embedder | None:
        """The loaded model, or None while it loads (which this begins). Raises ModelUnavailableError."""
        self.start()
        if self._slot.state is SlotState.LOADING:
            return None
        try:
            return self._slot.get()
        except ModelError as error:
            raise ModelUnavailableError(f"The embedding model cannot be loaded: {error}") from error

    def wait(self, timeout_s: float | None = None) -> bool:
        """Whether loading has ended in time, for better or worse."""
        self.start()
        return self._slot.wait(timeout_s) is not SlotState.LOADING

    def as_it_stands(self) -> Model:
        """For a search: loaded, or why not."""
        from ragd.store.search import Model

        self.start()
        state = self._slot.state
        if state is SlotState.READY:
            return Model(self._slot.get(), "", is_loading=False)
        if state is SlotState.FAILED:
            return Model(None, f"the embedding model cannot be loaded ({self._slot.reason})", is_loading=False)
        return Model()

    @property
    def state(self) -> str:
        """waiting, loading, ready or failed"""
        return self._slot.state.value if self._started else "waiting"

    @contextmanager
    def question(self) -> Iterator[None]:
        """Held while a query is answered, so that bulk work makes room."""
        with self._lock:
            self._asking += 1
        try:
            yield
        finally:
            with self._lock:
                self._asking -= 1
                self._last_asked = self._clock()

    def is_asked(self) -> bool:
        """Is a query being answered, or was one a moment ago?"""
        with self._lock:
            if self._asking:
                return True
            return self._last_asked is not None and self._clock() - self._last_asked < QUIET_S
