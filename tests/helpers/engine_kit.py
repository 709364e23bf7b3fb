"""A whole engine on temporary folders, with the vector index in memory, parsing in this process, the hash embedder
and a clock that tests move. No threads, no sleeping: a test writes files, posts hints, and ticks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ragd.chunkers.cut import cut
from ragd.chunkers.records import SourceFile
from ragd.daemon.backend import OWNER, Answer
from ragd.daemon.config import Config, parse_config
from ragd.daemon.engine import Engine
from ragd.daemon.files.hints import Hint
from ragd.daemon.files.walk import Walk
from ragd.daemon.model import HeldModel
from ragd.daemon.parsing.pool import InlinePool, Parser
from ragd.store.embedding.hashing import HashEmbedder
from ragd.store.embedding.slot import OpenedModel
from ragd.store.lock import StateLock
from ragd.store.memory_index import MemoryCollection, MemoryIndex
from ragd.store.types import Embedder, Vectors


@dataclass
class Clock:
    """Seconds that a test moves."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def ns(self) -> int:
        return int(self.now * 1e9)


class FussyEmbedder(HashEmbedder):
    """Refuses texts that hold one of `refused`; counts what it embeds."""

    def __init__(self, seed: str = "", dimension: int = 32) -> None:
        super().__init__(dimension, seed)
        self.refused: set[str] = set()
        self.embedded: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if any(word in text for word in self.refused for text in texts):
            raise RuntimeError("this text is too much for the model")
        self.embedded += texts
        return super().embed_documents(texts)


@dataclass
class Household:
    """A person's folder, their state folder, and an engine that can be closed and opened again."""

    folder: Path
    embedder: FussyEmbedder = field(default_factory=FussyEmbedder)
    extra_config: str = ""
    clock: Clock = field(default_factory=Clock)
    collections: dict[str, MemoryCollection] = field(default_factory=dict)
    """What the vector index holds; it outlives the engine, as a folder does."""
    parser: Callable[[HeldModel], Parser] = lambda held: InlinePool(held.counter_spec, held.budget)
    engine: Engine | None = None

    def __post_init__(self) -> None:
        self.notes.mkdir(parents=True, exist_ok=True)

    @property
    def notes(self) -> Path:
        return self.folder / "notes"

    def config(self) -> Config:
        text = f'[store]\npath = "{self.folder / "state"}"\n{self.extra_config}\n'
        return parse_config(text + f'[[root]]\nname = "notes"\npath = "{self.notes}"\n', None)

    def open(self, steps: Callable[[str], None] = lambda _: None) -> Engine:
        config = self.config()
        lock = StateLock(config.state_dir)
        lock.acquire()
        embedder: Embedder = self.embedder
        opened = OpenedModel(embedder.identity, None, embedder.counter, lambda: embedder)
        self.engine = Engine(
            config,
            lock,
            HeldModel(opened),
            index_factory=lambda: MemoryIndex(self.collections),
            index_path=None,
            parser=self.parser,
            clock=self.clock,
            clock_ns=self.clock.ns,
            steps=steps,
        )
        self.engine.model.wait()
        return self.engine

    @property
    def running(self) -> Engine:
        assert self.engine is not None
        return self.engine

    def close(self) -> None:
        if self.engine is not None:
            self.engine.close()
            self.engine = None

    def write(self, name: str, text: str) -> Path:
        path = self.notes / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def hint(self, *names: str, deleted: bool = False) -> None:
        for name in names:
            self.running.inbox.post(Hint("notes", name.encode(), deleted=deleted))

    def settle(self, *, seconds: float = 5.0) -> list[str]:
        """Let the debounce pass and tick until there is nothing to do; what the ticks did."""
        self.clock.now += seconds
        did: list[str] = []
        for _ in range(500):
            tick = self.running.worker.tick()
            if tick.did == "idle":
                return did
            did.append(tick.did)
            if tick.did in ("failed", "waiting"):
                self.clock.now += tick.wait_s or 0.0
        raise AssertionError(f"no end of it: {did[-20:]}")

    def walk(self) -> list[str]:
        self.running.walk_all()
        return self.settle()

    def search(self, query: str, mode: str = "lexical", **params: object) -> list[Answer]:
        return list(self.running.search(OWNER, {"query": query, "mode": mode, "k": 20, **params})["hits"])

    def rels(self, query: str) -> set[str]:
        return {hit["rel"] for hit in self.search(query)}

    def indexed_ids(self) -> set[str]:
        with self.running.store.snapshot() as snapshot:
            live = self.running.store.live.id
            return {str(row[0]) for row in snapshot.execute("SELECT id FROM chunk WHERE generation = ?", (live,))}

    def true_ids(self) -> set[str]:
        """What cutting the files on disk gives: the ids that have to be there, no more and no fewer."""
        engine = self.running
        root = engine.roots.by_name["notes"]
        found: set[str] = set()
        for seen in Walk(root.ignore):
            data = (self.notes / seen.path.decode()).read_bytes()
            settings = engine.config.cut_settings(engine.roots.configured["notes"], seen.path)
            budget = engine.model.budget
            chunks = cut(SourceFile(data, "notes", seen.path), settings, engine.model.counter, budget).chunks
            found |= {chunk.id for chunk in chunks}
        return found

    def assert_true(self) -> None:
        """Catalog and vector index hold exactly what the files say."""
        live = self.running.store.live
        expected = self.true_ids()
        assert self.indexed_ids() == expected
        assert self.collections[live.collection].rows.keys() == expected
        assert self.running.store.catalog.pending() == 0
