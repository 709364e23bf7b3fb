"""What a healthy Chroma folder looks like, told from sizes and headers alone, before anything loads it.

What must stay true: nothing here opens a file that is code (the id map is a pickle) or lets hnswlib see a
file: a torn index kills every process that loads it (Chroma issues 7510, 7238). Knows the files of chromadb
1.5.x, which is pinned.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import struct
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

DATABASE = "chroma.sqlite3"
CLEAN_STOP = "ragd-clean-stop"
"""Written by the child after a clean close and removed before the next opening."""

_SQLITE_HEADER = b"SQLite format 3\x00"
_SEGMENT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HNSW_HEADER = struct.Struct("<i4Q")
"""hnswlib's header.bin: version, offset of level 0, capacity, elements, bytes an element."""


@dataclass(frozen=True, slots=True)
class HnswHeader:
    """`elements` counts what was ever added, deleted rows included: their slots are never given back."""

    elements: int
    element_bytes: int


def folder_problems(folder: Path) -> list[str]:
    """Every sign of damage in `folder`; empty when there is none. A folder that is not there or empty is
    sound."""
    if not folder.is_dir():
        return [f"{folder} is not a folder"] if folder.exists() else []
    database = folder / DATABASE
    segments = segment_folders(folder)
    if not database.is_file():
        return [f"{DATABASE} is missing, index folders are there"] if segments else []
    problems = _database_problems(database)
    for segment in segments:
        problems += [f"{segment.name}: {problem}" for problem in _segment_problems(segment)]
    return problems


def segment_folders(folder: Path) -> list[Path]:
    """The folders Chroma keeps an HNSW index in, one a vector segment, sorted by name."""
    if not folder.is_dir():
        return []
    return sorted(entry for entry in folder.iterdir() if _SEGMENT.fullmatch(entry.name) and entry.is_dir())


def read_header(segment: Path) -> HnswHeader | None:
    """The header of a segment's index; None when there is none yet or it is too short."""
    try:
        data = (segment / "header.bin").read_bytes()
    except FileNotFoundError:
        return None
    if len(data) < _HNSW_HEADER.size:
        return None
    _, _, _, elements, element_bytes = _HNSW_HEADER.unpack_from(data)
    return HnswHeader(elements, element_bytes)


def lost_segments(folder: Path) -> list[str]:
    """Segments that, by the database, wrote an index to disk that is not there: Chroma itself would go on
    without those vectors and say nothing. Runs in the child: it finishes an interrupted transaction as any
    opener does."""
    if not (folder / DATABASE).is_file():
        return []
    with closing(sqlite3.connect(folder / DATABASE, timeout=10.0)) as database:
        rows = database.execute(
            "select segments.id from segments join max_seq_id on max_seq_id.segment_id = segments.id "
            "where segments.scope = 'VECTOR'"
        ).fetchall()
    lost = [segment for (segment,) in rows if read_header(folder / str(segment)) is None]
    return [f"{segment}: the index folder is missing or has no header" for segment in lost]


def elements_on_disk(folder: Path, collection_id: str) -> int:
    """How many rows the index file of a collection has room taken by, deleted ones included."""
    with closing(sqlite3.connect(folder / DATABASE, timeout=10.0)) as database:
        row = database.execute(
            "select id from segments where scope = 'VECTOR' and collection = ?", (collection_id,)
        ).fetchone()
    header = read_header(folder / str(row[0])) if row else None
    return header.elements if header else 0


def sweep(folder: Path) -> int:
    """Remove index folders no segment names: dropping a collection leaves its folder behind (Chroma issue
    5259). Returns how many. Only while no client has the folder open."""
    if not (folder / DATABASE).is_file():
        return 0
    with closing(sqlite3.connect(folder / DATABASE, timeout=10.0)) as database:
        live = {str(segment) for (segment,) in database.execute("select id from segments where scope = 'VECTOR'")}
    orphans = [segment for segment in segment_folders(folder) if segment.name not in live]
    for orphan in orphans:
        shutil.rmtree(orphan)
    return len(orphans)


def shrink(folder: Path) -> None:
    """Give free pages of the database back and erase what deleted rows said. Only while no client has it
    open. The write-ahead queue keeps metadata that was applied long ago; replaying needs only its vectors."""
    with closing(sqlite3.connect(folder / DATABASE, timeout=10.0, isolation_level=None)) as database:
        database.execute(
            "update embeddings_queue set metadata = null where metadata is not null and seq_id <= "
            "(select min(seq_id) from max_seq_id join segments on segments.id = max_seq_id.segment_id "
            "where segments.scope = 'METADATA' "
            "and embeddings_queue.topic like '%/' || segments.collection)"
        )
        database.execute("insert into embedding_fulltext_search(embedding_fulltext_search) values ('optimize')")
        database.execute("vacuum")


def make_durable(folder: Path) -> None:
    """Chroma never syncs its index files; after a clean close they are few and small enough to do it here."""
    for segment in segment_folders(folder):
        for path in (*segment.iterdir(), segment):
            _sync(path)
    _sync(folder)


def mark_clean_stop(folder: Path) -> None:
    (folder / CLEAN_STOP).touch()
    _sync(folder / CLEAN_STOP)
    _sync(folder)


def clear_clean_stop(folder: Path) -> None:
    (folder / CLEAN_STOP).unlink(missing_ok=True)
    _sync(folder)


def stopped_cleanly(folder: Path) -> bool:
    """True also for a folder nothing was ever written to."""
    return (folder / CLEAN_STOP).exists() or not (folder / DATABASE).exists()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _database_problems(database: Path) -> list[str]:
    with database.open("rb") as file:
        header = file.read(100)
    if len(header) < 100 or not header.startswith(_SQLITE_HEADER):
        return [f"{DATABASE} is empty or no database"]
    page_bytes = int.from_bytes(header[16:18], "big")
    page_bytes = 65536 if page_bytes == 1 else page_bytes
    pages = int.from_bytes(header[28:32], "big")
    # The page count is only meant when the change counter equals the version-valid-for number (SQLite file
    # format, 1.3).
    counted = header[24:28] == header[92:96]
    hot = database.with_name(DATABASE + "-journal")
    if counted and not hot.exists() and database.stat().st_size < pages * page_bytes:
        return [f"{DATABASE} is shorter than its header says"]
    return []


def _segment_problems(segment: Path) -> list[str]:
    sizes = {entry.name: entry.stat().st_size for entry in segment.iterdir() if entry.is_file()}
    if not sizes:
        return []
    missing = [name for name in ("header.bin", "data_level0.bin", "length.bin", "link_lists.bin") if name not in sizes]
    if missing:
        return [f"{', '.join(missing)} missing"]
    header = read_header(segment)
    if header is None:
        return ["header.bin is too short"]
    problems = []
    if sizes["data_level0.bin"] < header.elements * header.element_bytes:
        problems.append("data_level0.bin is shorter than its header says")
    if sizes["length.bin"] < header.elements * 4:
        problems.append("length.bin is shorter than its header says")
    if sizes["link_lists.bin"] > max(sizes["data_level0.bin"], 1 << 20):
        problems.append("link_lists.bin is larger than the index it belongs to")
    if header.elements and not sizes.get("index_metadata.pickle"):
        problems.append("index_metadata.pickle is missing or empty")
    return problems
