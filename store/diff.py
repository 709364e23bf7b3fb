"""What a new cut changes about the stored chunks of its file; pure.

What must stay true: an id in both the old and the new cut is kept: its row in the vector index is left alone
unless its metadata has changed or the row is known to be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragd.chunkers.records import Chunk, Cut
from ragd.store.filling import Text
from ragd.store.rows import CHUNK_COLUMNS, Row, chunk_values, path_text, storable, strings
from ragd.store.types import IndexFile, MetadataValue

TO_WRITE, WRITTEN, BLANK = 0, 1, 2
"""chunk.vector: its row in the vector index is to be written, is there, or there is none for a blank text."""

_ORDINAL, _KIND, _SECTION, _TEXT = (CHUNK_COLUMNS.index(name) for name in ("ordinal", "kind", "section", "text"))
_HASH = CHUNK_COLUMNS.index("text_hash")
_METADATA_CHARACTERS = 2_000
"""Of one metadata value: 8,000 bytes at most, under the 8,182 that distributed Chroma takes."""

_SECTION_JOIN = " > "


@dataclass(frozen=True, slots=True)
class NewChunk:
    """A chunk to be written: its row for the catalog and what the vector index gets."""

    values: tuple[Any, ...]
    """In the order of CHUNK_COLUMNS."""
    text_hash: bytes
    text: Text
    metadata: Mapping[str, MetadataValue]

    @property
    def id(self) -> str:
        return str(self.values[0])

    @property
    def is_blank(self) -> bool:
        return not self.text.embedded.strip()


@dataclass(frozen=True, slots=True)
class KeptChunk:
    """A chunk whose id stays and whose row in the catalog changes."""

    rowid: int
    values: tuple[Any, ...]
    words_changed: bool
    """Its heading or its body, as the lexical table has them."""


@dataclass(slots=True)
class FileDiff:
    """One file's difference. `rewrite` are kept chunks whose row in the vector index is to be written
    again."""

    change: IndexFile
    new: list[NewChunk] = field(default_factory=list)
    moved: list[KeptChunk] = field(default_factory=list)
    rewrite: list[tuple[int, NewChunk]] = field(default_factory=list)
    removed: list[tuple[int, str]] = field(default_factory=list)
    kept: int = 0

    def to_write(self) -> list[NewChunk]:
        """Rows for the vector index, in a fixed order."""
        return [chunk for chunk in (*self.new, *(chunk for _, chunk in self.rewrite)) if not chunk.is_blank]


@dataclass(frozen=True, slots=True)
class OldFile:
    """What the stored file says about all of its chunks."""

    type: str
    title: str


def diff_file(change: IndexFile, old_file: OldFile | None, old_chunks: Iterable[Row]) -> FileDiff:
    """`old_chunks` are rows of (rowid, vector, *CHUNK_COLUMNS).

    Raises ValueError when the cut itself is unusable (a lone surrogate in a text, an id twice).
    """
    cut = change.cut
    title, type_ = storable(cut.title), storable(cut.type)
    titles_differ = old_file is not None and old_file.title != title
    file_differs = titles_differ or (old_file is not None and old_file.type != type_)
    coming: dict[str, Chunk] = {chunk.id: chunk for chunk in cut.chunks}
    if len(coming) != len(cut.chunks):
        raise ValueError("two chunks of the file have the same id")
    diff = FileDiff(change)
    for rowid, vector, *old in old_chunks:
        chunk = coming.pop(old[0], None)
        if chunk is None:
            diff.removed.append((rowid, old[0]))
            continue
        diff.kept += 1
        values = chunk_values(chunk)
        metadata_differs = file_differs or (values[_KIND], values[_SECTION]) != (old[_KIND], old[_SECTION])
        if tuple(old) != values or titles_differ:
            words = titles_differ or (values[_SECTION], values[_TEXT]) != (old[_SECTION], old[_TEXT])
            diff.moved.append(KeptChunk(rowid, values, words))
        if vector == TO_WRITE or (metadata_differs and vector == WRITTEN):
            diff.rewrite.append((rowid, _new_chunk(change, chunk, values)))
    diff.new = [_new_chunk(change, chunk, chunk_values(chunk)) for chunk in coming.values()]
    return diff


def _new_chunk(change: IndexFile, chunk: Chunk, values: tuple[Any, ...]) -> NewChunk:
    metadata = index_metadata(change.root, change.path, change.cut, chunk)
    return NewChunk(values, values[_HASH], Text(chunk.embedded_text, chunk.tokens), metadata)


def index_metadata(root: str, path: bytes, cut: Cut, chunk: Chunk) -> dict[str, MetadataValue]:
    """The metadata of a row in the vector index: short strings that UTF-8 can hold, for any Chroma client."""
    return row_metadata(root, path, cut.type, chunk.kind, cut.title, chunk.section)


def row_metadata(
    root: str, path: bytes, type_: str, kind: str, title: str, section: tuple[str, ...]
) -> dict[str, MetadataValue]:
    """The same from a stored chunk. Root and path are never shortened: filters compare them."""
    return {
        "root": storable(root),
        "path": path_text(path),
        "type": storable(type_),
        "kind": storable(kind),
        "title": storable(title)[:_METADATA_CHARACTERS],
        "section": storable(_SECTION_JOIN.join(section))[:_METADATA_CHARACTERS],
    }


def parent_rows(file_id: int, cut: Cut) -> list[tuple[Any, ...]]:
    """Rows of the parent table."""
    return [
        (
            file_id,
            parent.id,
            parent.kind,
            storable(parent.title),
            strings(parent.section),
            *parent.span,
            parent.start_line,
            parent.end_line,
        )
        for parent in cut.parents
    ]
