"""What the catalog knows of files, for the plan, the status and the lists a person asks for.

What must stay true: nothing here changes which chunks are live (commit.py does), and no call holds more of
a large catalog in memory than it returns; lists are paged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from ragd.store.rows import FILE_COLUMNS, PLAN_COLUMNS, PlanRow, file_row
from ragd.store.sqlite import Database, Value
from ragd.store.types import FileRow

_ROWS_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Tally:
    """How many files of a root are in a state, and how many chunks they have."""

    root: str
    state: str
    files: int
    chunks: int


class Catalog:
    """Reads of the latest committed state, each on a snapshot of its own. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # --- keys of the store itself

    def meta(self, key: str) -> str | None:
        with self.database.read() as link:
            row = link.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str | None, *, durable: bool = True) -> None:
        """None removes the key."""
        with self.database.write(durable=durable) as link:
            if value is None:
                link.execute("DELETE FROM meta WHERE key = ?", (key,))
            else:
                link.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    # --- files, for the plan

    def plan_rows(self, generation: int, root: str, under: bytes = b"") -> Iterator[PlanRow]:
        """The files of a root in the order of their paths' bytes; with `under`, only that path and what is
        below it.

        Read in pages, each on a snapshot of its own: nothing is held open while the caller works.
        """
        low, high = b"", None
        if under:
            yield from self._plan_page(generation, root, "AND path = ?", (under,))
            low, high = under + b"/", under + b"0"  # "0" is the byte after "/"
        bound = "AND path >= ?" + (" AND path < ?" if high is not None else "")
        while True:
            values = (low,) if high is None else (low, high)
            page = self._plan_page(generation, root, bound + f" ORDER BY path LIMIT {_ROWS_AT_ONCE}", values)
            yield from page
            if len(page) < _ROWS_AT_ONCE:
                return
            low = page[-1].path + b"\0"

    def _plan_page(self, generation: int, root: str, where: str, values: tuple[bytes, ...]) -> list[PlanRow]:
        with self.database.read() as link:
            rows = link.execute(
                f"SELECT {PLAN_COLUMNS} FROM file WHERE generation = ? AND root = ? {where}",
                (generation, root, *values),
            )
            return list(map(PlanRow._make, rows))

    def file_row(self, generation: int, root: str, path: bytes) -> FileRow | None:
        rows = self._files("generation = ? AND root = ? AND path = ?", (generation, root, path))
        return rows[0] if rows else None

    def by_content(self, generation: int, content_hash: bytes, limit: int = 16) -> list[FileRow]:
        """Files with this content: where a file may have moved from, or has copies."""
        return self._files("generation = ? AND content_hash = ? LIMIT ?", (generation, content_hash, limit))

    def retry_due(self, generation: int, now_ns: int, limit: int = 500) -> list[FileRow]:
        """Files whose pause has passed, the longest waiting first."""
        return self._files(
            "generation = ? AND retry_at_ns <= ? ORDER BY retry_at_ns LIMIT ?", (generation, now_ns, limit)
        )

    def next_retry_ns(self, generation: int) -> int | None:
        """When the next file's pause passes."""
        with self.database.read() as link:
            row = link.execute(
                "SELECT min(retry_at_ns) FROM file WHERE generation = ? AND retry_at_ns IS NOT NULL",
                (generation,),
            ).fetchone()
        return None if row is None else cast("int | None", row[0])

    def paths(self, generation: int, root: str, limit: int = 500, after: bytes = b"") -> list[bytes]:
        """Paths of a root in order, those after `after`."""
        with self.database.read() as link:
            rows = link.execute(
                "SELECT path FROM file WHERE generation = ? AND root = ? AND path > ? ORDER BY path LIMIT ?",
                (generation, root, after, limit),
            )
            return [cast(bytes, row[0]) for row in rows]

    # --- lists and counts, for people

    def files_in_state(
        self, generation: int, state: str, limit: int = 100, after: tuple[str, bytes] | None = None
    ) -> list[FileRow]:
        """Failed or skipped files, in the order they came; `after` is the last (root, path) of the page
        before."""
        last: Value = 0
        if after is not None:
            with self.database.read() as link:
                row = link.execute(
                    "SELECT id FROM file WHERE generation = ? AND root = ? AND path = ?", (generation, *after)
                ).fetchone()
            last = row[0] if row else 0
        return self._files(
            "generation = ? AND state = ? AND state <> 'indexed' AND id > ? ORDER BY id LIMIT ?",
            (generation, state, last, limit),
        )

    def failures(self, generation: int, limit: int = 100, after: tuple[str, bytes] | None = None) -> list[FileRow]:
        return self.files_in_state(generation, "failed", limit, after)

    def tallies(self, generation: int) -> list[Tally]:
        """Costs nothing at a million files: triggers keep it."""
        with self.database.read() as link:
            rows = link.execute(
                "SELECT root, state, files, chunks FROM tally WHERE generation = ? AND files > 0",
                (generation,),
            )
            return [Tally(*cast("tuple[str, str, int, int]", row)) for row in rows]

    def roots(self, generation: int) -> list[str]:
        """Names of the roots that have files."""
        return sorted({tally.root for tally in self.tallies(generation)})

    def pending(self) -> int:
        """Ids that may be in the vector index and must not be."""
        with self.database.read() as link:
            row = link.execute("SELECT count(*) FROM pending").fetchone()
        return 0 if row is None else int(str(row[0]))

    def _files(self, where: str, values: tuple[Value, ...]) -> list[FileRow]:
        with self.database.read() as link:
            return [file_row(row) for row in link.execute(f"SELECT {FILE_COLUMNS} FROM file WHERE {where}", values)]
