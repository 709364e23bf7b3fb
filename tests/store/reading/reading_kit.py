"""What the tests of reading build with: files put into a real store as blocks with exact positions, and an
embedder whose vectors are near when texts share words.

Loaded by conftest.py under the name `reading_kit`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from ragd.chunkers.records import Chunk, Cut, Parent
from ragd.chunkers.tokens import TokenCounter
from ragd.store.filling import Pace
from ragd.store.memory_index import MemoryCollection, MemoryIndex
from ragd.store.search import Model, Searcher
from ragd.store.store import Store
from ragd.store.types import (
    Client,
    FileStat,
    Filters,
    ForgetFile,
    IndexFile,
    ModelIdentity,
    RootView,
    SearchRequest,
    Vectors,
)

DIMENSION = 64
OWNER = Client("owner")


def identity(name: str = "words") -> ModelIdentity:
    return ModelIdentity(name, f"fingerprint of {name}", DIMENSION, 256, "", "")


class WordEmbedder:
    """The mean of one random direction a word: texts that share words are near."""

    def __init__(self, model: ModelIdentity | None = None) -> None:
        self.identity = model or identity()
        self.queries = 0

    @property
    def counter(self) -> TokenCounter:
        raise AssertionError("reading counts no tokens")

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.stack([vector_of(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        self.queries += 1
        return np.stack([vector_of(text)])


def vector_of(text: str) -> Vectors:
    total = np.zeros(DIMENSION)
    for word in re.findall(r"\w+", text.lower()) or ["nothing"]:
        seed = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "big")
        total += np.random.default_rng(seed).standard_normal(DIMENSION)
    return np.asarray(total / np.linalg.norm(total), dtype=np.float32)


class CountingIndex(MemoryIndex):
    """Remembers how many rows each query asked for; hides rows as an index out of step would."""

    def __init__(self, collections: dict[str, MemoryCollection] | None = None) -> None:
        super().__init__(collections)
        self.asked: list[int] = []
        self.hidden: set[str] = set()
        self.fails: Exception | None = None

    def query(self, collection: str, vector: Any, n: int, where: Any = None) -> list[tuple[str, float]]:
        self.asked.append(n)
        if self.fails is not None:
            raise self.fails
        found = super().query(collection, vector, n + len(self.hidden), where)
        return [row for row in found if row[0] not in self.hidden][:n]


class World:
    """A store, its roots, and a searcher over it."""

    def __init__(self, folder: Path, model: ModelIdentity | None = None) -> None:
        self.folder = folder
        self.embedder = WordEmbedder(model)
        self.index = CountingIndex()
        self.roots = {"notes": RootView("notes", "/home/me/notes", "ok")}
        self.texts: dict[tuple[str, bytes], str] = {}
        self.failures: list[Exception] = []
        self.store = self.open()

    def open(self) -> Store:
        return Store(
            self.folder,
            identity=self.embedder.identity,
            index_factory=lambda: self.index,
            pace=Pace(batch_tokens=4_096),
        )

    def reopen(self, model: ModelIdentity | None = None) -> None:
        """As after a restart, perhaps with another model."""
        self.store.close()
        self.embedder = WordEmbedder(model)
        self.index = CountingIndex(self.index.storage)
        self.store = self.open()

    def add_root(self, name: str, *labels: str, state: str = "ok") -> None:
        self.roots[name] = RootView(name, f"/home/me/{name}", state, frozenset(labels))

    def put(
        self,
        path: bytes | str,
        *blocks: str,
        root: str = "notes",
        mtime_ns: int = 1_700_000_000 * 10**9,
        parents: Sequence[Sequence[int]] = (),
        pages: Sequence[int] = (),
        kinds: Sequence[str] = (),
        languages: Sequence[str] = (),
        separator: str = "\n\n",
        **cut: Any,
    ) -> list[str]:
        """Index a file of these blocks, one chunk each; returns their ids. `parents`: ordinals of each
        parent."""
        raw = path.encode() if isinstance(path, str) else path
        made = make_cut(raw, root, blocks, separator, parents, **cut)
        chunks = tuple(
            replace(
                chunk,
                page=pages[number] if pages else None,
                kind=kinds[number] if kinds else chunk.kind,
                language=languages[number] if languages else None,
            )
            for number, chunk in enumerate(made.chunks)
        )
        self.texts[root, raw] = separator.join(blocks)
        stat = FileStat(1, mtime_ns, mtime_ns, 7, 1)
        content = blake2b(self.texts[root, raw].encode(), digest_size=16).digest()
        change = IndexFile(root, raw, stat, True, content, replace(made, chunks=chunks))
        outcome = self.store.commit([change], self.embedder)
        assert outcome.unembedded == []
        return [chunk.id for chunk in chunks]

    def forget(self, path: str, root: str = "notes") -> None:
        self.store.commit([ForgetFile(root, path.encode())], None)

    @property
    def searcher(self) -> Searcher:
        return Searcher(
            self.store.snapshot,
            lambda: self.store.index,
            self.store.cache,
            index_failed=self.failures.append,
        )

    def search(
        self,
        query: str,
        k: int = 5,
        mode: str = "hybrid",
        *,
        expand: str = "none",
        client: Client = OWNER,
        model: Model | None = None,
        **filters: Any,
    ) -> dict[str, Any]:
        request = SearchRequest(query, k, mode, expand, Filters(**filters))
        return self.searcher.search(request, client, self.roots, model or Model(self.embedder))

    def read_text(self, root: RootView, path: bytes) -> list[str] | None:
        text = self.texts.get((root.name, path))
        return None if text is None else text.split("\n")

    def close(self) -> None:
        self.store.close()


def make_cut(
    path: bytes,
    root: str,
    blocks: Sequence[str],
    separator: str,
    parents: Sequence[Sequence[int]],
    *,
    title: str = "Title",
    section: Sequence[str] = ("Top", "24/7 desk"),
    prefix: str = "",
    type_: str = "markdown",
    language: str | None = None,
    tags: Sequence[str] = (),
    canonical: bool = False,
) -> Cut:
    chunks: list[Chunk] = []
    at, line = 0, 1
    for ordinal, block in enumerate(blocks):
        size, breaks = len(block.encode()), block.count("\n")
        name = blake2b(repr((root, path, prefix, block, ordinal)).encode(), digest_size=8).hexdigest()
        chunks.append(
            Chunk(
                id=name,
                kind="text",
                section=tuple(section),
                text=block,
                prefix=prefix,
                overlap="",
                embedded_text=prefix + block,
                spans=((at, at + size),),
                overlap_spans=(),
                start_line=line,
                end_line=line + breaks,
                tokens=len(block.split()) + 2,
                ordinal=ordinal,
                parent=next((f"p{number}" for number, held in enumerate(parents) if ordinal in held), None),
            )
        )
        at += size + len(separator.encode())
        line += breaks + separator.count("\n")
    units = tuple(
        Parent(
            f"p{number}",
            "section",
            "Top",
            ("Top",),
            (chunks[held[0]].spans[0][0], chunks[held[-1]].spans[0][1]),
            chunks[held[0]].start_line,
            chunks[held[-1]].end_line,
        )
        for number, held in enumerate(parents)
    )
    return Cut(
        type=type_,
        chunker="auto",
        title=title,
        recipe="recipe",
        language=language,
        chunks=tuple(chunks),
        parents=units,
        metadata={"tags": list(tags)},
        canonical_text=separator.join(blocks) if canonical else None,
    )
