"""What the tests of the store build with: small cuts with real ids, a hash embedder that fails on demand, an index
that can be damaged, a store that is killed at a step.

Loaded by conftest.py under the name `store_kit`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from ragd.chunkers.records import Chunk, Cut, Dropped, Parent
from ragd.chunkers.tokens import TokenCounter
from ragd.store.errors import DamagedError
from ragd.store.filling import Pace
from ragd.store.memory_index import MemoryCollection, MemoryIndex
from ragd.store.store import Store
from ragd.store.types import FailFile, FileStat, ForgetFile, IndexFile, ModelIdentity, VectorRow, Vectors

DIMENSION = 8
ROOT = "notes"


class Killed(BaseException):
    """Stands for kill -9: nothing catches it."""


def identity(name: str = "model", dimension: int = DIMENSION) -> ModelIdentity:
    fingerprint = blake2b(f"{name} {dimension}".encode(), digest_size=16).hexdigest()
    return ModelIdentity(name, fingerprint, dimension, 256, "", "")


class Embedder:
    """The vector follows from model and text. `embedded` counts each text; `fails` says which raise, `nan` which
    have no vector; a batch of more than `most` is a MemoryError."""

    def __init__(self, model: ModelIdentity | None = None) -> None:
        self.identity = model or identity()
        self.embedded: Counter[str] = Counter()
        self.batches: list[list[str]] = []
        self.fails: set[str] = set()
        self.nan: set[str] = set()
        self.most = 10_000

    @property
    def counter(self) -> TokenCounter:
        raise AssertionError("the store counts no tokens")

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        if len(texts) > self.most:
            raise MemoryError(len(texts))
        if bad := self.fails.intersection(texts):
            raise RuntimeError(f"cannot embed {min(bad)}")
        self.embedded.update(text for text in texts if text not in self.nan)
        return np.stack([self._vector(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        return np.stack([self._vector(text)])

    def _vector(self, text: str) -> Vectors:
        if text in self.nan:
            return np.full(self.identity.dimension, np.nan, dtype=np.float32)
        seed = int.from_bytes(blake2b((self.identity.name + text).encode(), digest_size=8).digest(), "big")
        vector = np.random.default_rng(seed).standard_normal(self.identity.dimension)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


class FragileIndex(MemoryIndex):
    """A memory index whose "folder" outlives it, can be damaged and be set aside."""

    def __init__(self, folder: IndexFolder) -> None:
        super().__init__(folder.collections)
        self._folder = folder
        folder.opened += 1

    def _check_open(self) -> None:
        super()._check_open()
        if self._folder.is_damaged:
            raise DamagedError("the vector index is damaged")

    def upsert(self, collection: str, rows: Sequence[VectorRow]) -> None:
        for row in rows:
            super().upsert(collection, [row])
            self._folder.written[row.id] += 1
            self._folder.step("index row")

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        for key in ids:
            super().delete(collection, [key])
            self._folder.deleted[key] += 1
            self._folder.step("index delete")

    def check(self, collection: str, expected: int | None = None, *, vectors: bool = False) -> list[str]:
        assert expected in (None, self.count(collection))
        return [f"{collection}: vectors are missing"] if vectors and self._folder.lacks_vectors else []

    def set_aside(self, reason: str) -> Path:
        self._folder.set_aside.append(reason)
        self.storage.clear()
        self._folder.is_damaged = self._folder.lacks_vectors = False
        return Path("index.damaged")


class IndexFolder:
    """What of an index is on the disk, and counts of what was done to it."""

    def __init__(self) -> None:
        self.collections: dict[str, MemoryCollection] = {}
        self.is_damaged = False
        self.lacks_vectors = False
        self.opened = 0
        self.set_aside: list[str] = []
        self.written: Counter[str] = Counter()
        self.deleted: Counter[str] = Counter()
        self.step: Callable[[str], None] = lambda _: None

    def ids(self, collection: str) -> set[str]:
        return set(self.collections[collection].rows) if collection in self.collections else set()


class Clock:
    """Nanoseconds that move on by a second a look."""

    def __init__(self) -> None:
        self.now_ns = 1_700_000_000 * 10**9

    def __call__(self) -> int:
        self.now_ns += 10**9
        return self.now_ns


def chunk_id(root: str, path: bytes, kind: str, text: str, same: int) -> str:
    digest = blake2b(digest_size=16)
    for part in (root.encode(), path, kind.encode(), text.encode(), str(same).encode()):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def cut_of(
    texts: Sequence[str],
    *,
    path: bytes = b"a.md",
    root: str = ROOT,
    title: str = "A",
    section: Sequence[str] = ("Top",),
    prefix: str = "",
    type_: str = "markdown",
    skipped: str | None = None,
    canonical_text: str | None = None,
    metadata: dict[str, object] | None = None,
) -> Cut:
    """One chunk a text, one after the other in the file."""
    chunks: list[Chunk] = []
    seen: Counter[str] = Counter()
    start = 0
    for ordinal, text in enumerate(texts):
        embedded = prefix + text
        span = (start, start + len(text.encode("utf-8", "surrogatepass")))
        key = chunk_id(root, path, "text", embedded.encode("utf-8", "replace").decode(), seen[embedded])
        chunks.append(
            Chunk(
                id=key,
                kind="text",
                section=tuple(section),
                text=text,
                prefix=prefix,
                overlap="",
                embedded_text=embedded,
                spans=(span,),
                overlap_spans=(),
                start_line=ordinal + 1,
                end_line=ordinal + 1,
                tokens=len(embedded.split()) + 2,
                ordinal=ordinal,
                parent="p0",
            )
        )
        seen[embedded] += 1
        start = span[1]
    return Cut(
        type=type_,
        chunker="auto",
        title=title,
        recipe="recipe-1",
        skipped=skipped,
        chunks=tuple(chunks),
        parents=(Parent("p0", "section", "Top", ("Top",), (0, start), 1, max(1, len(texts))),),
        dropped=(Dropped((0, 0), "markup"),),
        metadata=dict(metadata or {}),  # type: ignore[arg-type] - tests hand over what no JSON holds
        canonical_text=canonical_text,
    )


def stat(size: int = 1, mtime_ns: int = 5, inode: int = 7) -> FileStat:
    return FileStat(size, mtime_ns, mtime_ns, inode, 1)


def index_file(texts: Sequence[str], path: bytes = b"a.md", root: str = ROOT, **cut_options: object) -> IndexFile:
    cut = cut_of(texts, path=path, root=root, **cut_options)  # type: ignore[arg-type] - passed on as they are
    content = blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return IndexFile(root, path, stat(len(texts)), True, content, cut)


def forget(path: bytes = b"a.md", root: str = ROOT) -> ForgetFile:
    return ForgetFile(root, path)


def fail(path: bytes = b"a.md", root: str = ROOT, reason: str = "parse_error", retry: int | None = None) -> FailFile:
    return FailFile(root, path, stat(), reason, "it is broken", retry_at_ns=retry)


class House:
    """A state folder and the index beside it, opened, killed and opened again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.index = IndexFolder()
        self.clock = Clock()
        self.steps: list[str] = []
        self.kill_at: int | None = None
        self.on_step: Callable[[str], None] = lambda _: None
        self.pace = Pace(batch_tokens=64)
        self.index.step = self._step

    def open(self, model: ModelIdentity | None = None, **options: object) -> Store:
        return Store(
            self.folder,
            identity=model or identity(),
            index_factory=lambda: FragileIndex(self.index),
            pace=self.pace,
            clock_ns=self.clock,
            steps=self._step,
            **options,  # type: ignore[arg-type] - passed on as they are
        )

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if self.kill_at is not None and len(self.steps) > self.kill_at:
            raise Killed(name)
        self.on_step(name)


def kill(store: Store) -> None:
    """End the process without a word: the files are closed as they are."""
    store.cache.close()
    store.catalog.database.close()


def texts_of(store: Store, generation: int | None = None) -> dict[tuple[str, bytes], list[str]]:
    """The live texts of every file, in order."""
    number = store.live.id if generation is None else generation
    found: dict[tuple[str, bytes], list[str]] = {}
    with store.snapshot() as snapshot:
        for root, path in snapshot.execute("SELECT root, path FROM file WHERE generation = ?", (number,)):
            found[root, path] = [row.text for row in snapshot.file_chunks(root, path, number)]
    return found


def assert_consistent(house: House, store: Store) -> None:
    """Index, lexical table and counts are what the catalog's chunks say, and nothing is pending."""
    for generation in filter(None, (store.live, store.building)):
        with store.snapshot() as snapshot:
            rows = list(snapshot.execute("SELECT id, rowid, vector FROM chunk WHERE generation = ?", (generation.id,)))
            assert all(vector in (1, 2) for _, _, vector in rows)
            assert house.index.ids(generation.collection) == {key for key, _, vector in rows if vector == 1}
            lexical = snapshot.execute(f"SELECT rowid FROM lexical_{generation.id}")
            assert {row[0] for row in lexical} == {rowid for _, rowid, _ in rows}
            counted = snapshot.execute(
                "SELECT root, state, count(*), sum(chunk_count), sum((SELECT count(*) FROM chunk"
                " WHERE file_id = file.id)) FROM file WHERE generation = ? GROUP BY root, state",
                (generation.id,),
            )
            tallies = {(row[0], row[1]): tuple(row[2:]) for row in counted}
        assert tallies == {
            (tally.root, tally.state): (tally.files, tally.chunks, tally.chunks)
            for tally in store.catalog.tallies(generation.id)
        }
    assert store.catalog.pending() == 0
