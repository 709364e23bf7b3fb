"""What a query sees: one moment of the catalog.

What must stay true: everything read through one Snapshot belongs to one committed state; a chunk that is
not in it is no hit, whatever the vector index says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragd.store.rows import (
    CHUNK_SELECT,
    FILE_COLUMNS,
    GENERATION_COLUMNS,
    ChunkRow,
    Row,
    chunk_row,
    file_row,
    generation_of,
)
from ragd.store.sqlite import Connection, Value, batches, marks
from ragd.store.types import FileRow, Generation


class Snapshot:
    """Made by `Store.snapshot()`. For one thread; useless after its `with` has ended."""

    def __init__(self, link: Connection) -> None:
        self._link = link
        found = {
            generation.state: generation
            for generation in map(
                generation_of,
                link.execute(f"SELECT {GENERATION_COLUMNS} FROM generation WHERE state <> 'retired'"),
            )
        }
        self.live: Generation | None = found.get("live")
        """The generation that answers. None only while the first one is being made."""
        self.building: Generation | None = found.get("building")

    def execute(self, sql: str, bindings: Sequence[Value] = ()) -> Iterator[Row]:
        """The rows of a SELECT, lazily, each a tuple."""
        yield from self._link.execute(sql, tuple(bindings))

    def chunks(self, ids: Sequence[str], generation: int | None = None) -> dict[str, ChunkRow]:
        """The live chunks among these ids; an id that is not live in this snapshot is left out."""
        number = self._number(generation)
        sql = CHUNK_SELECT + " WHERE chunk.generation = ? AND chunk.id IN ({})"
        rows = (
            chunk_row(row)
            for batch in batches(ids)
            for row in self._link.execute(sql.format(marks(len(batch))), (number, *batch))
        )
        return {row.id: row for row in rows}

    def chunks_by_rowid(self, rowids: Sequence[int]) -> dict[int, ChunkRow]:
        """The same, by the rowids the lexical table gives."""
        sql = CHUNK_SELECT + " WHERE chunk.rowid IN ({})"
        rows = (
            chunk_row(row)
            for batch in batches(rowids)
            for row in self._link.execute(sql.format(marks(len(batch))), tuple(batch))
        )
        return {row.rowid: row for row in rows}

    def file(self, root: str, path: bytes, generation: int | None = None) -> FileRow | None:
        """What is known of one file."""
        row = self._link.execute(
            f"SELECT {FILE_COLUMNS} FROM file WHERE generation = ? AND root = ? AND path = ?",
            (self._number(generation), root, path),
        ).fetchone()
        return None if row is None else file_row(row)

    def file_chunks(self, root: str, path: bytes, generation: int | None = None) -> Iterator[ChunkRow]:
        """The chunks of one file in their order."""
        rows = self._link.execute(
            CHUNK_SELECT + " WHERE file.generation = ? AND file.root = ? AND file.path = ? ORDER BY chunk.ordinal",
            (self._number(generation), root, path),
        )
        return map(chunk_row, rows)

    def canonical_text(self, file_id: int) -> str | None:
        """The text that spans point into where a file's bytes are not the text."""
        row = self._link.execute("SELECT text FROM file_text WHERE file_id = ?", (file_id,)).fetchone()
        return None if row is None else str(row[0])

    def _number(self, generation: int | None) -> int:
        if generation is not None:
            return generation
        return -1 if self.live is None else self.live.id
