"""The catalog's side of a commit: the rows that one group of changes writes, inside one transaction.

What must stay true: every function here runs inside the transaction of its caller and touches nothing else;
file, chunk, parent, lexical and pending rows of a file change together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragd.store import lexical_table
from ragd.store.diff import BLANK, WRITTEN, FileDiff, OldFile, parent_rows
from ragd.store.rows import (
    CHUNK_COLUMNS,
    Row,
    heading,
    metadata_json,
    stat_key,
    storable,
    strings,
    tags_of,
)
from ragd.store.sqlite import Connection, batches, marks
from ragd.store.types import FailFile, IndexFile, TouchFile

_CHUNK_INSERT = (
    f"INSERT INTO chunk (rowid, generation, file_id, vector, {', '.join(CHUNK_COLUMNS)})"
    f" VALUES ({marks(4 + len(CHUNK_COLUMNS))})"
)
_CHUNK_UPDATE = f"UPDATE chunk SET {', '.join(f'{name} = ?' for name in CHUNK_COLUMNS)} WHERE rowid = ?"

_FILE_STAT = ("generation", "root", "path", "size", "mtime_ns", "ctime_ns", "inode", "device", "trusted")
_FILE_INDEXED = (
    *_FILE_STAT, "content_hash", "state", "reason", "detail", "recipe", "type", "chunker", "title",
    "language", "encoding", "metadata", "tags", "chunk_count", "stale", "attempts", "retry_at_ns",
    "indexed_ns",
)  # fmt: skip
_FILE_FAILED = (
    *_FILE_STAT, "content_hash", "state", "reason", "detail", "recipe", "attempts", "retry_at_ns",
)  # fmt: skip


def _upsert(columns: Sequence[str], also: str = "") -> str:
    sets = ", ".join(f"{name} = excluded.{name}" for name in columns[3:])
    return (
        f"INSERT INTO file ({', '.join(columns)}) VALUES ({marks(len(columns))})"
        f" ON CONFLICT (generation, root, path) DO UPDATE SET {sets}{also} RETURNING id"
    )


_UPSERT_INDEXED = _upsert(_FILE_INDEXED)
# a further failure counts on; the chunks that are there are those of an older version
_UPSERT_FAILED = _upsert(
    _FILE_FAILED,
    ", attempts = CASE WHEN file.state = 'failed' THEN file.attempts + 1 ELSE 1 END, stale = file.chunk_count > 0",
).replace("attempts = excluded.attempts, ", "")


@dataclass(slots=True)
class Words:
    """What a commit changes in the lexical table; written last.

    FTS5 keeps what was written in memory, and writes it out whenever a statement with triggers or cascades runs in
    the same transaction: between files that would be a segment a file (measured: 5 ms each).
    """

    removed: list[int] = field(default_factory=list)
    entries: list[lexical_table.Entry] = field(default_factory=list)

    def write(self, link: Connection, generation: int) -> None:
        lexical_table.delete(link, generation, self.removed)
        lexical_table.insert(link, generation, self.entries)


def old_file(link: Connection, generation: int, root: str, path: bytes) -> tuple[int, OldFile] | None:
    """Its row's id and what a diff needs of it."""
    row: Row | None = link.execute(
        "SELECT id, type, title FROM file WHERE generation = ? AND root = ? AND path = ?",
        (generation, root, path),
    ).fetchone()
    return None if row is None else (row[0], OldFile(row[1], row[2]))


def old_chunks(link: Connection, file_id: int) -> Iterable[Row]:
    """Rows of (rowid, vector, *CHUNK_COLUMNS)."""
    return link.execute(
        f"SELECT rowid, vector, {', '.join(CHUNK_COLUMNS)} FROM chunk WHERE file_id = ? ORDER BY ordinal",
        (file_id,),
    )


def announce(link: Connection, generation: int, diffs: Sequence[FileDiff]) -> None:
    """(a): the new ids may be in the vector index from now on; the rows to be written again may be out of
    date."""
    link.executemany(
        "INSERT INTO pending (generation, id, epoch) VALUES (?, ?, 0) ON CONFLICT DO NOTHING",
        [(generation, chunk.id) for diff in diffs for chunk in diff.new],
    )
    link.executemany(
        "UPDATE chunk SET vector = 0 WHERE rowid = ?",
        [(rowid,) for diff in diffs for rowid, _ in diff.rewrite],
    )


def index_file(link: Connection, generation: int, diff: FileDiff, words: Words, *, epoch: int, now_ns: int) -> None:
    """(c) for one file with a new cut."""
    file_id = _write_file(link, generation, diff.change, now_ns)
    remove_chunks(link, generation, diff.removed, words, epoch=epoch)
    title = storable(diff.change.cut.title)
    for rowid, chunk in enumerate(diff.new, start=_next_rowid(link)):
        vector = BLANK if chunk.is_blank else WRITTEN
        link.execute(_CHUNK_INSERT, (rowid, generation, file_id, vector, *chunk.values))
        words.entries.append(_entry(rowid, title, chunk.values))
    link.executemany(_CHUNK_UPDATE, [(*kept.values, kept.rowid) for kept in diff.moved])
    for kept in diff.moved:
        if kept.words_changed:
            words.removed.append(kept.rowid)
            words.entries.append(_entry(kept.rowid, title, kept.values))
    link.executemany("UPDATE chunk SET vector = 1 WHERE rowid = ?", [(rowid,) for rowid, _ in diff.rewrite])
    link.executemany(
        "DELETE FROM pending WHERE generation = ? AND id = ?", [(generation, chunk.id) for chunk in diff.new]
    )
    _write_parts(link, file_id, diff.change)


def _entry(rowid: int, title: str, values: Sequence[Any]) -> lexical_table.Entry:
    return rowid, heading(title, values[3]), values[4]


def _next_rowid(link: Connection) -> int:
    """AUTOINCREMENT's own count: a rowid is never used twice."""
    row: Row | None = link.execute("SELECT seq FROM sqlite_sequence WHERE name = 'chunk'").fetchone()
    return 1 if row is None else int(row[0]) + 1


def _write_file(link: Connection, generation: int, change: IndexFile, now_ns: int) -> int:
    cut = change.cut
    values = (
        generation,
        change.root,
        change.path,
        *stat_key(change.stat),
        int(change.trusted),
        change.content_hash,
        "indexed" if cut.skipped is None else "skipped",
        cut.skipped or "",
        storable(cut.detail),
        cut.recipe,
        storable(cut.type),
        storable(cut.chunker),
        storable(cut.title),
        cut.language,
        cut.encoding,
        metadata_json(cut.metadata),
        strings(tags_of(cut.metadata)),
        len(cut.chunks),
        0,
        0,
        None,
        now_ns,
    )
    row: Row | None = link.execute(_UPSERT_INDEXED, values).fetchone()
    assert row is not None, "an upsert returns its row"
    return int(row[0])


def _write_parts(link: Connection, file_id: int, change: IndexFile) -> None:
    cut = change.cut
    for table in ("parent", "dropped", "file_text"):
        link.execute(f"DELETE FROM {table} WHERE file_id = ?", (file_id,))
    link.executemany(f"INSERT INTO parent VALUES ({marks(9)})", parent_rows(file_id, cut))
    link.executemany(
        "INSERT INTO dropped VALUES (?, ?, ?, ?)",
        [(file_id, *dropped.span, dropped.reason) for dropped in cut.dropped],
    )
    if cut.canonical_text is not None:
        link.execute("INSERT INTO file_text VALUES (?, ?)", (file_id, storable(cut.canonical_text)))


def remove_chunks(
    link: Connection, generation: int, removed: Sequence[tuple[int, str]], words: Words, *, epoch: int
) -> None:
    """The (rowid, id) pairs are live no more; their rows in the vector index wait for the queries that need
    them."""
    rowids = [rowid for rowid, _ in removed]
    words.removed += rowids
    for batch in batches(rowids):
        link.execute(f"DELETE FROM chunk WHERE rowid IN ({marks(len(batch))})", batch)
    link.executemany(
        "INSERT OR REPLACE INTO pending (generation, id, epoch) VALUES (?, ?, ?)",
        [(generation, key, epoch) for _, key in removed],
    )


def forget_file(link: Connection, generation: int, root: str, path: bytes, words: Words, *, epoch: int) -> int:
    """(c) for a file that is gone; the number of chunks it had."""
    found = old_file(link, generation, root, path)
    if found is None:
        return 0
    rows: Iterable[Row] = link.execute("SELECT rowid, id FROM chunk WHERE file_id = ?", (found[0],))
    removed = [(int(rowid), str(key)) for rowid, key in rows]
    remove_chunks(link, generation, removed, words, epoch=epoch)
    link.execute("DELETE FROM file WHERE id = ?", (found[0],))
    return len(removed)


def touch_file(link: Connection, generation: int, change: TouchFile) -> None:
    """(c) for a file whose content is what it was."""
    link.execute(
        "UPDATE file SET size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, device = ?, trusted = ?"
        " WHERE generation = ? AND root = ? AND path = ?",
        (*stat_key(change.stat), int(change.trusted), generation, change.root, change.path),
    )


def fail_file(link: Connection, generation: int, change: FailFile) -> None:
    """(c) for a file that could not be read or cut: its last good chunks stay, marked stale."""
    link.execute(
        _UPSERT_FAILED,
        (
            generation,
            change.root,
            change.path,
            *stat_key(change.stat),
            1,
            change.content_hash,
            "failed",
            change.reason,
            storable(change.detail),
            change.recipe,
            1,
            change.retry_at_ns,
        ),
    ).fetchall()
