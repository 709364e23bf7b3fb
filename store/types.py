"""The records and protocols the rooms of the store share with each other and with the daemon.

What must stay true: a protocol's docstrings are its laws; every implementation passes the same contract tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ragd.chunkers.records import Cut
from ragd.chunkers.tokens import TokenCounter

if TYPE_CHECKING:  # a command that only asks the daemon does not load numpy
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]
    """Shape (n, dimension), rows of unit length."""
else:
    Vectors = Any

MetadataValue = str | int | float | bool


class FileStat(NamedTuple):
    """What a walk saw of a file. A tuple, since a walk makes one for every file."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int


@dataclass(frozen=True, slots=True)
class FileRow:
    """What the catalog remembers of a file, in one generation."""

    root: str
    path: bytes
    stat: FileStat
    trusted: bool
    """False when mtime or ctime was younger than 2 s when it was read: an equal stat proves nothing then."""
    content_hash: bytes
    state: str
    """indexed, skipped or failed"""
    reason: str
    detail: str
    recipe: str
    type: str
    chunker: str
    title: str
    chunk_count: int
    stale: bool
    attempts: int
    retry_at_ns: int | None


@dataclass(frozen=True, slots=True)
class Generation:
    """One complete set of chunks and vectors under one model identity."""

    id: int
    identity: str
    collection: str
    dimension: int
    state: str
    """building or live"""


# --- what the worker asks the store to do --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IndexFile:
    """Replace everything known of a file with this cut (also for a cut that was skipped: its chunks go)."""

    root: str
    path: bytes
    stat: FileStat
    trusted: bool
    content_hash: bytes
    cut: Cut


@dataclass(frozen=True, slots=True)
class TouchFile:
    """The content is what it was; only the stat is new."""

    root: str
    path: bytes
    stat: FileStat
    trusted: bool


@dataclass(frozen=True, slots=True)
class ForgetFile:
    """The file is gone: its chunks go too."""

    root: str
    path: bytes


@dataclass(frozen=True, slots=True)
class FailFile:
    """The file could not be read or parsed: its last good chunks stay, marked stale."""

    root: str
    path: bytes
    stat: FileStat
    reason: str
    detail: str
    content_hash: bytes = b""
    recipe: str = ""
    retry_at_ns: int | None = None


Change = IndexFile | TouchFile | ForgetFile | FailFile


@dataclass(slots=True)
class CommitOutcome:
    """Counters of one commit. `unembedded` are files left as they were because texts of theirs got no vector."""

    added: int = 0
    kept: int = 0
    removed: int = 0
    texts_embedded: int = 0
    tokens_embedded: int = 0
    seconds_embedding: float = 0.0
    unembedded: list[tuple[str, bytes, str]] = field(default_factory=list)
    """(root, path, error text)"""


# --- embedding -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Everything that decides a vector. Two models with the same fingerprint give the same vectors."""

    name: str
    fingerprint: str
    """Hash of weights, tokenizer, pooling, normalisation, prompts, max length and precision; not of the name."""
    dimension: int
    max_tokens: int
    query_prompt: str
    document_prompt: str


class Embedder(Protocol):
    """A loaded embedding model. Thread-safe: queries go first, between two batches of documents."""

    @property
    def identity(self) -> ModelIdentity: ...

    @property
    def counter(self) -> TokenCounter:
        """The model's own tokenizer, truncation and padding off."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """One unit vector a text, in order; the document prompt is added here. One batch: the caller sizes it.
        Raises MemoryError when the batch was too large."""

    def embed_query(self, text: str) -> Vectors:
        """Shape (1, dimension); the query prompt is added here."""


# --- the vector index ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VectorRow:
    """One row of the vector index. Immutable: the id determines vector and metadata."""

    id: str
    vector: npt.NDArray[np.float32]
    metadata: Mapping[str, MetadataValue]
    document: str | None = None


class VectorIndex(Protocol):
    """Chroma, or its twin in memory: a projection that can be rebuilt at any time. Cosine space.

    Every method raises StoreError when the index cannot be reached or is damaged, and nothing else.
    """

    def create(self, collection: str, dimension: int) -> None:
        """Idempotent."""

    def drop(self, collection: str) -> None:
        """Idempotent; gives the disk space back."""

    def collections(self) -> list[str]: ...

    def upsert(self, collection: str, rows: Sequence[VectorRow]) -> None:
        """Durable on return. Any number of rows (batched inside, at most the limit a call); writing a row that
        is there changes nothing; metadata is replaced, never merged."""

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        """Durable on return. Unknown ids are no error; an empty list is no error."""

    def query(
        self,
        collection: str,
        vector: npt.NDArray[np.float32],
        n: int,
        where: Mapping[str, MetadataValue] | None = None,
    ) -> list[tuple[str, float]]:
        """The n nearest ids with their cosine similarity (-1..1), best first; fewer when there are fewer.
        `where` keys are joined by AND."""

    def ids(self, collection: str) -> Iterable[str]:
        """Every id, read in pages."""

    def count(self, collection: str) -> int: ...

    def close(self) -> None:
        """Idempotent."""


# --- asking --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks. `labels` None means everything is visible (the owner's own command line)."""

    name: str
    labels: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class RootView:
    """What a reader needs to know of a configured root, resolved from the configuration when a query runs."""

    name: str
    path: str
    state: str
    """ok, unavailable, degraded or mass_deletion"""
    labels: frozenset[str] = frozenset()
    held: frozenset[bytes] = frozenset()
    """Files that stay in the index though nothing is there any more (mass_deletion)."""
    unread: tuple[bytes, ...] = ()
    """Places that could not be looked at (degraded): files or folders with all that is below."""
    changed: Callable[[bytes, int], bool] | None = field(default=None, compare=False, repr=False)
    """Whether what stands at a path now is not what had this time (nanoseconds): looks at the disk."""

    def doubts(self, path: bytes, mtime_ns: int | None = None) -> bool:
        """Whether the last look could not tell what stands at this path now, or, with the time of what is indexed of
        it, whether something else stands there now: saved, moved or removed since."""
        if self.state == "unavailable" or path in self.held:
            return True
        if any(not place or path == place or path.startswith(place + b"/") for place in self.unread):
            return True
        return mtime_ns is not None and self.changed is not None and self.changed(path, mtime_ns)


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions a hit must meet; a tuple is met by any of its values, () by none, None is no condition."""

    root: tuple[str, ...] | None = None
    path: tuple[str, ...] | None = None
    """Globs on the path in the root."""
    type: tuple[str, ...] | None = None
    kind: tuple[str, ...] | None = None
    language: tuple[str, ...] | None = None
    label: tuple[str, ...] | None = None
    tag: tuple[str, ...] | None = None
    page: int | None = None
    since_ns: int | None = None
    """Modification time of the file, nanoseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    query: str
    k: int = 5
    mode: str = "hybrid"
    """hybrid, dense or lexical"""
    expand: str = "none"
    """none, neighbours or parent"""
    filters: Filters = field(default_factory=Filters)
