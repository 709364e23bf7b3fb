"""Records to rows of the catalog and back; pure.

What must stay true: whatever a file system or a parser hands over has a form that SQLite takes and that
compares equal the next time (inodes above 2^63, times after 2262, lone surrogates in a title).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from ragd.chunkers.records import Chunk, Json, Span
from ragd.store.types import FileRow, FileStat, Generation

Row = Sequence[Any]

_INT64 = 2**63
_STRINGS = msgspec.json.Decoder(list[str])
_SPANS = msgspec.json.Decoder(tuple[Span, ...])

StatKey = tuple[int, int, int, int, int]
"""size, mtime_ns, ctime_ns, inode, device as the catalog keeps them."""


class PlanRow(NamedTuple):
    """What a plan needs of a file; cheap to make by the ten thousand. The first six compare with a
    `stat_key`."""

    path: bytes
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int
    trusted: int
    state: str
    recipe: str
    content_hash: bytes
    stale: int
    attempts: int
    retry_at_ns: int | None
    reason: str


PLAN_COLUMNS = ", ".join(PlanRow._fields)

FILE_COLUMNS = (
    "root, path, size, mtime_ns, ctime_ns, inode, device, trusted, content_hash, state, reason, detail, "
    "recipe, type, chunker, title, chunk_count, stale, attempts, retry_at_ns"
)

GENERATION_COLUMNS = "id, identity, collection, dimension, state"

# columns of a chunk that follow from its cut; all but `id` may change while the id stays
CHUNK_COLUMNS = (
    "id", "ordinal", "kind", "section", "text", "prefix", "overlap", "rendered", "spans", "overlap_spans",
    "start_line", "end_line", "page", "locator", "language", "symbol", "tokens", "parent", "text_hash",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A live chunk and what a hit needs of its file."""

    rowid: int
    file_id: int
    id: str
    ordinal: int
    kind: str
    section: tuple[str, ...]
    text: str
    prefix: str
    overlap: str
    rendered: str | None
    """What stands in the embedded text for the body; None: the body itself with \\n newlines."""
    spans: tuple[Span, ...]
    overlap_spans: tuple[Span, ...]
    start_line: int
    end_line: int
    page: int | None
    locator: str | None
    language: str | None
    symbol: str | None
    tokens: int
    parent: str | None
    text_hash: bytes
    root: str
    path: bytes
    type: str
    title: str
    mtime_ns: int
    stale: bool
    tags: tuple[str, ...]

    @property
    def embedded_text(self) -> str:
        return embedded_text(self.prefix, self.overlap, self.text, self.rendered)


CHUNK_SELECT = (
    "SELECT chunk.rowid, chunk.file_id, "
    + ", ".join(f"chunk.{name}" for name in CHUNK_COLUMNS)
    + ", file.root, file.path, file.type, file.title, file.mtime_ns, file.stale, file.tags"
    " FROM chunk JOIN file ON file.id = chunk.file_id"
)


def text_hash(embedded_text: str) -> bytes:
    """BLAKE2b-128 of the embedded text: the key in the vector cache, beside the model identity."""
    return blake2b(embedded_text.encode(), digest_size=16).digest()


def newlines(text: str) -> str:
    """The text with \\n for every line break, as the model gets it."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def embedded_text(prefix: str, overlap: str, text: str, rendered: str | None) -> str:
    """What the model gets for a stored chunk, without its instruction."""
    return prefix + overlap + (newlines(text) if rendered is None else rendered)


def storable(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which UTF-8 cannot hold; both are 3 bytes long."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if _has_surrogate(text) else text


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def path_text(path: bytes) -> str:
    """The path for people and for the vector index: bytes that are not UTF-8 show as \\xHH."""
    return path.decode("utf-8", "backslashreplace")


def stat_key(stat: FileStat) -> StatKey:
    """The stat as the catalog keeps it: 64-bit inodes and devices wrap, times stop at the ends of int64."""
    return (
        stat.size,
        max(-_INT64, min(_INT64 - 1, stat.mtime_ns)),
        max(-_INT64, min(_INT64 - 1, stat.ctime_ns)),
        (stat.inode + _INT64) % (2 * _INT64) - _INT64,
        (stat.device + _INT64) % (2 * _INT64) - _INT64,
    )


def file_row(row: Row) -> FileRow:
    """From FILE_COLUMNS."""
    root, path, size, mtime_ns, ctime_ns, inode, device, trusted, content_hash, *rest = row
    *texts, chunk_count, stale, attempts, retry_at_ns = rest
    state, reason, detail, recipe, type_, chunker, title = texts
    return FileRow(
        root=root,
        path=path,
        stat=FileStat(size, mtime_ns, ctime_ns, inode % (2 * _INT64), device % (2 * _INT64)),
        trusted=bool(trusted),
        content_hash=content_hash,
        state=state,
        reason=reason,
        detail=detail,
        recipe=recipe,
        type=type_,
        chunker=chunker,
        title=title,
        chunk_count=chunk_count,
        stale=bool(stale),
        attempts=attempts,
        retry_at_ns=retry_at_ns,
    )


def generation_of(row: Row) -> Generation:
    """From GENERATION_COLUMNS."""
    return Generation(*row)


def chunk_values(chunk: Chunk) -> tuple[Any, ...]:
    """In the order of CHUNK_COLUMNS. Raises UnicodeEncodeError when the embedded text holds a lone
    surrogate."""
    head = chunk.prefix + chunk.overlap
    body = newlines(chunk.text)
    plain = chunk.embedded_text == head + body
    return (
        chunk.id,
        chunk.ordinal,
        chunk.kind,
        strings(chunk.section),
        storable(chunk.text),
        chunk.prefix,
        chunk.overlap,
        None if plain else chunk.embedded_text[len(head) :],
        _json(chunk.spans),
        _json(chunk.overlap_spans),
        chunk.start_line,
        chunk.end_line,
        chunk.page,
        None if chunk.locator is None else storable(chunk.locator),
        chunk.language,
        None if chunk.symbol is None else storable(chunk.symbol),
        chunk.tokens,
        chunk.parent,
        text_hash(chunk.embedded_text),
    )


def chunk_row(row: Row) -> ChunkRow:
    """From CHUNK_SELECT."""
    values = list(row)
    values[5] = tuple(_STRINGS.decode(values[5]))
    values[10] = _SPANS.decode(values[10])
    values[11] = _SPANS.decode(values[11])
    values[-2] = bool(values[-2])
    values[-1] = tuple(_STRINGS.decode(values[-1]))
    return ChunkRow(*values)


def strings(items: Sequence[str]) -> str:
    """A JSON array of strings that UTF-8 can hold."""
    return _json([storable(item) for item in items])


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def heading(title: str, section: str) -> str:
    """The heading column of the lexical table: title and section path (given as JSON)."""
    return "\n".join([title, *_STRINGS.decode(section)])


def metadata_json(metadata: Mapping[str, Json]) -> str:
    """The file's metadata as JSON; what JSON cannot say (dates, NaN) as text."""
    return json.dumps(_plain(dict(metadata)), separators=(",", ":"))


def _plain(value: object) -> Json:
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return str(value)


def tags_of(metadata: Mapping[str, Json]) -> tuple[str, ...]:
    """The tags a document's metadata names: a list, or words separated by commas; each once, without `#`."""
    found: dict[str, None] = {}
    for key in ("tags", "tag"):
        value = metadata.get(key)
        items = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
        for item in items:
            if isinstance(item, str | int | float) and (tag := str(item).strip().lstrip("#")):
                found[storable(tag)] = None
    return tuple(found)
