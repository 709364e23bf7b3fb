"""Reading what is indexed: a chunk, its neighbours, its parent, or lines of a file.

What must stay true: only a place that is indexed and visible is ever read, and a place that is not there and
one that may not be seen give the same answer (PlaceNotFoundError). A text put together from several chunks
holds every source character once, in the order of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragd.store.errors import FilterError, PlaceNotFoundError
from ragd.store.gate import Place, visible
from ragd.store.places import place_fields
from ragd.store.rows import CHUNK_SELECT, ChunkRow, chunk_row, path_text
from ragd.store.snapshot import Snapshot
from ragd.store.sqlite import Value
from ragd.store.types import Client, RootView

ReadText = Callable[[RootView, bytes], Sequence[str] | None]
"""The lines of a file as it is now, without line ends; None when it cannot be read."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of one file put together from chunks. Lines are 1-based and inclusive."""

    text: str
    start_line: int
    end_line: int
    start: int
    stop: int
    """From its first source byte to behind its last."""
    ids: tuple[str, ...]


def join_chunks(rows: Sequence[ChunkRow]) -> Passage:
    """The bodies of chunks of one file as one text, each source byte once.

    Between two bodies that do not touch stands what separates their lines: as many newlines as lines lie
    between them, or one space within a line. (Only blanks and dropped regions lie between bodies.)
    """
    if not rows:
        raise ValueError("no chunks to join")
    ordered = sorted(rows, key=lambda row: (*bytes_of(row), row.ordinal))
    pieces: list[str] = []
    reached, reached_line = 0, 0
    for row in ordered:
        start, stop = bytes_of(row)
        if pieces and stop <= reached:
            continue
        body = row.text
        if pieces and start < reached:
            body = _without_start(row, reached - start)
        elif pieces and start > reached:
            pieces.append(_gap(pieces[-1], body, row.start_line - reached_line))
        pieces.append(body)
        reached, reached_line = stop, row.end_line
    return Passage(
        text="".join(pieces),
        start_line=min(row.start_line for row in ordered),
        end_line=max(row.end_line for row in ordered),
        start=min(bytes_of(row)[0] for row in ordered),
        stop=reached,
        ids=tuple(row.id for row in ordered),
    )


def bytes_of(row: ChunkRow) -> tuple[int, int]:
    """From the first byte of the chunk's body to behind its last."""
    if not row.spans:
        return (0, 0)
    return (row.spans[0][0], row.spans[-1][1])


def neighbours_of(snapshot: Snapshot, row: ChunkRow, count: int) -> list[ChunkRow]:
    """The chunk with up to `count` chunks before and after it in its file, in order."""
    between = "chunk.file_id = ? AND chunk.ordinal BETWEEN ? AND ?"
    return _rows(snapshot, between, (row.file_id, row.ordinal - count, row.ordinal + count))


def siblings_of(snapshot: Snapshot, row: ChunkRow) -> list[ChunkRow]:
    """The chunks that lie in the chunk's parent, itself among them, in order; itself when it has no
    parent."""
    if row.parent is None:
        return [row]
    within = (
        "chunk.file_id = ?1 AND (chunk.parent = ?2 OR EXISTS (SELECT 1 FROM parent WHERE parent.file_id = ?1 "
        "AND parent.id = ?2 AND json_extract(chunk.spans, '$[0][0]') >= parent.start "
        "AND json_extract(chunk.spans, '$[#-1][1]') <= parent.stop))"
    )
    return _rows(snapshot, within, (row.file_id, row.parent))


def get_chunk(
    snapshot: Snapshot,
    client: Client,
    roots: Mapping[str, RootView],
    chunk_id: str,
    *,
    parent: bool = False,
    neighbours: int = 0,
) -> dict[str, Any]:
    """A chunk of the live generation by its id, widened when asked. Raises PlaceNotFoundError."""
    row = snapshot.chunks([chunk_id]).get(chunk_id)
    root = roots.get(row.root) if row is not None else None
    if row is None or root is None or not visible(client, Place(root, row.path)):
        raise PlaceNotFoundError(f"no chunk {chunk_id!r} is indexed")
    rows = siblings_of(snapshot, row) if parent else neighbours_of(snapshot, row, neighbours)
    passage = join_chunks(rows)
    return {
        **place_fields(root, row.path),
        "id": row.id,
        "ids": list(passage.ids),
        "type": row.type,
        "title": row.title,
        "section": list(row.section),
        "start_line": passage.start_line,
        "end_line": passage.end_line,
        "page": row.page,
        "locator": row.locator,
        "text": passage.text,
        "stale": row.stale or root.doubts(row.path, row.mtime_ns),
    }


def get_lines(
    snapshot: Snapshot,
    client: Client,
    roots: Mapping[str, RootView],
    root_name: str,
    path: bytes,
    *,
    read_text: ReadText,
    start: int | None = None,
    end: int | None = None,
) -> dict[str, Any]:
    """Lines of an indexed file (1-based, inclusive; the end is clamped; None means from the first, to the
    last).

    Where the bytes of a format are not its text, lines are those of its stored canonical text. A file that
    cannot be read now is answered from its chunks and marked stale. Raises PlaceNotFoundError, or FilterError
    when the file has no line `start`.
    """
    root = roots.get(root_name)
    entry = None
    if root is not None and visible(client, Place(root, path)):
        entry = _indexed_file(snapshot, root_name, path)
    if root is None or entry is None:
        raise PlaceNotFoundError(f"{path_text(path)!r} is not indexed")
    file_id, type_, title, stale = entry
    head = {**place_fields(root, path), "type": type_, "title": title}
    canonical = snapshot.canonical_text(file_id)
    lines = read_text(root, path) if canonical is None else canonical.split("\n")
    first = 1 if start is None else start
    if lines is None:
        return {**head, **_lines_of_chunks(snapshot, file_id, path, first, end), "stale": True}
    # A final line end does not begin one more line.
    total = len(lines) - 1 if len(lines) > 1 and lines[-1] == "" else max(len(lines), 1)
    if first > total:
        raise FilterError("start", f"{path_text(path)!r} has {total} lines; line {first} was asked for")
    last = total if end is None else min(end, total)
    return {
        **head,
        "start_line": first,
        "end_line": last,
        "text": "\n".join(lines[first - 1 : last]),
        "stale": stale or root.doubts(path),
    }


def _rows(snapshot: Snapshot, where: str, bindings: Sequence[Value]) -> list[ChunkRow]:
    return [
        chunk_row(row) for row in snapshot.execute(f"{CHUNK_SELECT} WHERE {where} ORDER BY chunk.ordinal", bindings)
    ]


def _indexed_file(snapshot: Snapshot, root: str, path: bytes) -> tuple[int, str, str, bool] | None:
    """Id, type, title and staleness of a file of the live generation that is indexed, or was when last
    readable."""
    if snapshot.live is None:
        return None
    rows = snapshot.execute(
        "SELECT id, type, title, stale FROM file WHERE generation = ? AND root = ? AND path = ? "
        "AND (state = 'indexed' OR chunk_count > 0)",
        (snapshot.live.id, root, path),
    )
    for file_id, type_, title, stale in rows:
        return int(file_id), str(type_), str(title), bool(stale)
    return None


def _lines_of_chunks(snapshot: Snapshot, file_id: int, path: bytes, first: int, end: int | None) -> dict[str, Any]:
    """What the index still knows of these lines, in whole chunks."""
    rows = _rows(
        snapshot,
        "chunk.file_id = ? AND chunk.end_line >= ? AND chunk.start_line <= ?",
        (file_id, first, 2**62 if end is None else end),
    )
    if not rows:
        raise PlaceNotFoundError(f"{path_text(path)!r} cannot be read now, and nothing of these lines is indexed")
    passage = join_chunks(rows)
    return {"start_line": passage.start_line, "end_line": passage.end_line, "text": passage.text}


def _gap(before: str, after: str, lines_between: int) -> str:
    newlines = lines_between - (len(before) - len(before.rstrip("\n"))) - (len(after) - len(after.lstrip("\n")))
    if lines_between > 0:
        return "\n" * max(newlines, 0)
    return "" if before[-1:].isspace() or after[:1].isspace() else " "


def _without_start(row: ChunkRow, overlap_bytes: int) -> str:
    """The body without its first `overlap_bytes` source bytes, cut at a character."""
    encoded = row.text.encode("utf-8")
    source_bytes = sum(stop - start for start, stop in row.spans)
    cut = overlap_bytes if len(encoded) == source_bytes else round(overlap_bytes * len(encoded) / source_bytes)
    return encoded[cut:].decode("utf-8", "ignore")
