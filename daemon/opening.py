"""What an engine needs before it is one: the lock on its state, the model, the parsing pool.

What must stay true: whatever keeps an engine from opening is a UserError that says what to do.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

from ragd.chunkers.limits import limits_of
from ragd.daemon.config import Config
from ragd.daemon.config_schema import ChunkingKeys
from ragd.daemon.errors import ModelUnavailableError, StateLockedError, StoreUnavailableError, UsageError
from ragd.daemon.fact_file import FactFile
from ragd.daemon.model import HeldModel
from ragd.daemon.parsing.limits import ParseLimits
from ragd.daemon.parsing.pool import InlinePool, ParsePool, Parser
from ragd.store.embedding.slot import open_model
from ragd.store.errors import LockedError, ModelError, StoreError
from ragd.store.lock import StateLock

log = logging.getLogger(__name__)

LOCK_WAIT_S = 30.0
"""A killed daemon's index process finishes its last write before the state is free."""
_LOCK_TURN_S = 0.2


def take_lock(config: Config) -> StateLock:
    """The lock on the state folder, waiting for a process that ends. Raises StateLockedError at once when a daemon
    answers, also when it begins to while we wait (two were started at the same time); StoreUnavailableError."""
    lock = StateLock(config.state_dir)
    give_up_at, turn_s = time.monotonic() + LOCK_WAIT_S, 0.0
    while True:
        try:
            lock.acquire(turn_s)
        except LockedError as error:
            if time.monotonic() >= give_up_at or not _is_dying(config):
                raise StateLockedError(str(error)) from error
        except StoreError as error:
            raise StoreUnavailableError(str(error)) from error
        else:
            return lock
        turn_s = _LOCK_TURN_S


def _is_dying(config: Config) -> bool:
    """Nobody answers on the socket: whoever holds the lock is a process that ends, or a command that works alone."""
    from ragd.daemon.api.sockets import answers

    return not (config.socket_path.exists() and answers(config.socket_path))


def held_model(config: Config) -> HeldModel:
    """The configured model, found and known, not loaded. Raises ModelUnavailableError, UsageError."""
    embedding = config.embedding
    try:
        opened = open_model(
            embedding.model,
            offline=embedding.offline,
            query_prompt=embedding.query_prompt,
            document_prompt=embedding.document_prompt,
            threads=config.model_threads,
            device="cpu" if embedding.device == "auto" else embedding.device,
            memory=FactFile(config.state_dir / "facts.json"),
        )
    except ModelError as error:
        raise ModelUnavailableError(f"The embedding model cannot be loaded: {error}") from error
    model = HeldModel(opened)
    try:
        limits_of(config.cut_settings(None, b""), model.counter, model.budget)
    except ValueError as error:
        raise UsageError(f"[embedding] document_prompt: {error}") from error
    for warning in size_warnings(config, model):
        log.warning("%s", warning)
    return model


def size_warnings(config: Config, model: HeldModel) -> Iterator[str]:
    """A sentence for each configured size that is more than the model takes: chunks are only as large as that."""
    places: list[tuple[str, ChunkingKeys]] = [("chunking", config.chunking)]
    places += [(f"chunking.{name}", keys) for name, keys in config.chunking.types.items()]
    places += [(f"root {root.name}, rule {rule.glob}", rule) for root in config.roots for rule in root.rules]
    most = model.identity.max_tokens
    for place, keys in places:
        for name in ("target_tokens", "max_tokens"):
            size = getattr(keys, name)
            if size is not None and size > most:
                yield f"{place}: {name} is {size}, but {model.identity.name} takes {most} tokens: chunks get no larger"


def inline_parser(held: HeldModel) -> Parser:
    """Parsing in this process, without limits."""
    return InlinePool(held.counter_spec, held.budget)


def parsing_pool(config: Config, held: HeldModel) -> Parser:
    """Parsing in child processes: one for every two cores, since the model works on them too."""
    limits = ParseLimits(config.limits.parse_seconds, config.limits.parse_memory_mb, config.limits.niceness)
    return ParsePool(limits, held.counter_spec, held.budget, workers=max(1, min(4, config.cpu_threads // 2)))
