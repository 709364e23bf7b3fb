"""What a commit costs beside embedding: rows a second into catalog, vector cache and the index in memory.

    python benchmarks/commit_cost.py [--files 200] [--chunks 10] [--rounds 5]

Each round adds the same number of new files to a growing store, then edits one chunk of each, then commits them
unchanged; a cost that grows with the round would be a cost that grows with the size of the store.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from ragd.chunkers.records import Chunk, Cut
from ragd.chunkers.tokens import PlainCounter, TokenCounter
from ragd.store.filling import Pace
from ragd.store.memory_index import MemoryIndex
from ragd.store.store import Store
from ragd.store.types import FileStat, IndexFile, ModelIdentity, Vectors

DIMENSION = 384
IDENTITY = ModelIdentity("random", "0" * 32, DIMENSION, 256, "", "")
WORDS = [f"word{n}" for n in range(5000)]


class RandomEmbedder:
    """Vectors that cost nothing."""

    identity = IDENTITY

    def __init__(self) -> None:
        self.seconds = 0.0
        self._random = np.random.default_rng(1)

    @property
    def counter(self) -> TokenCounter:
        return PlainCounter()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        vectors = self._random.standard_normal((len(texts), DIMENSION), dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed_query(self, text: str) -> Vectors:
        return self.embed_documents([text])


def file_with(path: bytes, texts: Sequence[str]) -> IndexFile:
    chunks = tuple(
        Chunk(
            id=blake2b(path + text.encode(), digest_size=16).hexdigest(),
            kind="text",
            section=("Chapter", "Section"),
            text=text,
            prefix="Title > Chapter > Section\n",
            overlap="",
            embedded_text="Title > Chapter > Section\n" + text,
            spans=((place * 1000, place * 1000 + len(text)),),
            overlap_spans=(),
            start_line=place * 20 + 1,
            end_line=place * 20 + 20,
            tokens=200,
            ordinal=place,
        )
        for place, text in enumerate(texts)
    )
    cut = Cut(type="markdown", chunker="auto", title="Title", recipe="r", chunks=chunks)
    content = blake2b("".join(texts).encode(), digest_size=16).digest()
    return IndexFile("bench", path, FileStat(1, 2, 3, 4, 5), True, content, cut)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--chunks", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    random = np.random.default_rng(2)

    def text() -> str:
        return " ".join(WORDS[n] for n in random.integers(0, len(WORDS), 120))

    with tempfile.TemporaryDirectory() as folder:
        store = Store(
            Path(folder) / "state",
            identity=IDENTITY,
            index_factory=MemoryIndex,
            pace=Pace(batch_tokens=8192),
        )
        store.recover()
        embedder = RandomEmbedder()

        def commit(files: Sequence[IndexFile]) -> float:
            began = time.perf_counter()
            outcome = store.commit(files, embedder)
            return time.perf_counter() - began - outcome.seconds_embedding

        rows = options.files * options.chunks
        print(f"{options.files} files x {options.chunks} chunks a round; seconds without embedding")
        for turn in range(options.rounds):
            texts = [[text() for _ in range(options.chunks)] for _ in range(options.files)]
            files = [file_with(b"%d/%d.md" % (turn, n), each) for n, each in enumerate(texts)]
            new = commit(files)
            for each in texts:
                each[len(each) // 2] = text()
            edited = [file_with(file.path, each) for file, each in zip(files, texts, strict=True)]
            edit = commit(edited)
            same = commit(edited)
            print(
                f"round {turn}: new {new:.3f} s = {rows / new:,.0f} rows/s, {1000 * new / options.files:.2f} ms/file;"
                f" one chunk edited {1000 * edit / options.files:.2f} ms/file;"
                f" unchanged {1000 * same / options.files:.2f} ms/file"
            )
        singles = [commit([file_with(b"single/%d.md" % n, [text()])]) for n in range(20)]
        print(f"a file of one chunk alone: median {1000 * float(np.median(singles)):.1f} ms")
        store.close()


if __name__ == "__main__":
    main()
