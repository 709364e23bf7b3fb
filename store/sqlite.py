"""The only door to apsw: opening a database file, its migrations, one write connection, a pool of read
snapshots.

What must stay true: everything written inside one `write()` becomes visible at once or not at all, and a
`read()` sees one moment of the database for as long as it is open. apsw's exceptions leave this room as
StoreError with path and cure.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

import apsw

from ragd.store.errors import DamagedError, StoreError

Connection = apsw.Connection
Value = None | int | float | bytes | str
Row = tuple[Value, ...]
_Item = TypeVar("_Item")

_BUSY_TIMEOUT_MS = 5_000
_JOURNAL_LIMIT_BYTES = 64 * 1024 * 1024
_IDLE_READERS = 8
_READER_CACHE_KIB = 8 * 1024
_WRITER_CACHE_KIB = 32 * 1024
"""Ids and hashes go to random places of their indexes: at 100,000 chunks those have some 15 MB of pages."""
_VARIABLES = 500
"""Placeholders in one statement; the statement cache then holds few different ones."""

_CURES: tuple[tuple[type[apsw.Error], str], ...] = (
    (apsw.FullError, "the disk is full; free some space and try again"),
    (apsw.ReadOnlyError, "it cannot be written; check the owner and mode of the file and its folder"),
    (apsw.CantOpenError, "it cannot be opened; check the owner and mode of the file and its folder"),
    (apsw.PermissionsError, "access was refused; check the owner and mode of the file and its folder"),
    (apsw.BusyError, "another process keeps it locked; end that process and try again"),
    (apsw.LockedError, "it is locked; try again"),
    (apsw.IOError, "the disk gave an error; check the disk and its free space"),
    (apsw.ProtocolError, "its lock could not be taken; a network file system cannot hold the state folder"),
)


@contextmanager
def as_store_errors(path: Path) -> Iterator[None]:
    """Turn what apsw raises for reasons outside the program into StoreError; faults of ours stay as they
    are."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        # A note for the next start to look closer; where it cannot be left, only an unclean stop makes it
        # do so.
        with suppress(OSError):
            _damage_note(path).touch()
        raise DamagedError(f"{path}: damaged ({error}); restart ragd: it is then set aside and built anew") from error
    except tuple(kind for kind, _ in _CURES) as error:
        cure = next(cure for kind, cure in _CURES if isinstance(error, kind))
        raise StoreError(f"{path}: {cure} ({error})") from error


def _damage_note(path: Path) -> Path:
    return path.with_name(path.name + "-damaged")


def private_folder(path: Path) -> None:
    """Make the folder if it is not there, and readable by its owner only."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        path.chmod(0o700)


def private_file(path: Path) -> None:
    """Make the file if it is not there, and readable by its owner only; SQLite gives -wal and -shm the same
    mode."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be opened ({error.strerror}); check the owner and mode of it and its folder"
        ) from error
    try:
        if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def migrations_of(name: str) -> list[str]:
    """The SQL of `NNNN_<name>*.sql`, in order; the position is the schema version it leads to."""
    folder = files("ragd.store.migrations")
    pattern = re.compile(rf"\d{{4}}_{re.escape(name)}(_\w+)?\.sql")
    found = sorted(entry.name for entry in folder.iterdir() if pattern.fullmatch(entry.name))
    return [(folder / file).read_text(encoding="utf-8") for file in found]


def batches(items: Sequence[_Item], size: int = _VARIABLES) -> Iterator[list[_Item]]:
    """The items in lists of at most `size`, for statements with placeholders."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def marks(count: int) -> str:
    """Placeholders for `count` values."""
    return ",".join("?" * count)


class Database:
    """One SQLite file in WAL mode. Thread-safe: writers wait for each other, readers wait for nobody."""

    def __init__(self, path: Path, migrations: list[str], *, page_bytes: int = 4096) -> None:
        self.path = path
        self.damage_was_seen = _damage_note(path).exists()
        """An earlier process met damage in this file: have it checked, then `forget_damage`."""
        self._closed = False
        self._write_lock = threading.Lock()
        self._idle: list[Connection] = []
        self._idle_lock = threading.Lock()
        private_file(path)
        with as_store_errors(path):
            self._writer = self._connect()
            try:
                self._writer.pragma("page_size", page_bytes)
                self._writer.pragma("cache_size", -_WRITER_CACHE_KIB)
                self._writer.pragma("journal_mode", "wal")
                self._writer.pragma("journal_size_limit", _JOURNAL_LIMIT_BYTES)
                self._writer.pragma("secure_delete", "fast")
                self._migrate(migrations)
            except BaseException:
                self._writer.close(True)
                raise

    def _connect(self) -> Connection:
        connection = apsw.Connection(str(self.path))
        connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
        connection.pragma("foreign_keys", 1)
        return connection

    def _migrate(self, migrations: list[str]) -> None:
        version = int(str(self._writer.pragma("user_version")))
        if version > len(migrations):
            raise StoreError(
                f"{self.path}: written by a newer ragd (schema {version}, this one knows {len(migrations)}); "
                "install that version again, or name another folder in [store] path"
            )
        for number in range(version, len(migrations)):
            with self._transaction(durable=True) as link:
                link.execute(migrations[number])
                link.pragma("user_version", number + 1)

    @contextmanager
    def _transaction(self, *, durable: bool) -> Iterator[Connection]:
        link = self._writer
        link.pragma("synchronous", "full" if durable else "normal")
        link.execute("BEGIN IMMEDIATE")
        try:
            yield link
            link.execute("COMMIT")
        except BaseException:
            if link.in_transaction:
                link.execute("ROLLBACK")
            raise

    @contextmanager
    def write(self, *, durable: bool = True) -> Iterator[Connection]:
        """One transaction. `durable`: on the disk when this returns; else at the latest with the next
        durable one, in order, so that a power cut takes away the newest only."""
        with self._write_lock, as_store_errors(self.path):
            if self._closed:
                raise StoreError(f"{self.path}: is closed")
            with self._transaction(durable=durable) as link:
                yield link

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A snapshot: the database as it was when this was entered."""
        with as_store_errors(self.path):
            with self._idle_lock:
                if self._closed:
                    raise StoreError(f"{self.path}: is closed")
                link = self._idle.pop() if self._idle else None
            if link is None:
                link = self._connect()
                link.pragma("query_only", 1)
                link.pragma("cache_size", -_READER_CACHE_KIB)
            try:
                link.execute("BEGIN")
                link.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()  # BEGIN alone pins nothing
                yield link
            finally:
                self._give_back(link)

    def _give_back(self, link: Connection) -> None:
        if link.in_transaction:
            link.execute("ROLLBACK")
        # A statement that was not read to its end keeps the old snapshot; such a connection must not come
        # back.
        is_free = link.txn_state() == apsw.SQLITE_TXN_NONE
        with self._idle_lock:
            if is_free and not self._closed and len(self._idle) < _IDLE_READERS:
                self._idle.append(link)
                return
        link.close(True)

    @contextmanager
    def scratch(self) -> Iterator[Connection]:
        """A connection of its own for temporary tables; each statement sees the latest committed state."""
        with as_store_errors(self.path):
            link = self._connect()
            try:
                yield link
            finally:
                link.close(True)

    def sound(self) -> bool:
        """SQLite's own quick check; reads the whole file."""
        try:
            # On a new connection: one that has searched remembers full-text tables as they were then.
            with self.scratch() as link:
                return link.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]
        except DamagedError:
            return False

    def forget_damage(self) -> None:
        """It was checked."""
        _damage_note(self.path).unlink(missing_ok=True)
        self.damage_was_seen = False

    def close(self) -> None:
        """Idempotent. Snapshots still open keep working and close their connection when they end."""
        with self._idle_lock:
            if self._closed:
                return
            self._closed = True
            idle, self._idle = self._idle, []
        with self._write_lock:
            for link in idle:
                link.close(True)
            self._writer.close(True)


def set_aside(path: Path, stamp: str) -> Path:
    """Move a damaged database with its -wal and -shm into a folder of its own beside it; nothing is
    deleted."""
    target = path.parent / f"damaged-{path.stem}-{stamp}"
    number = 1
    while target.exists():
        number += 1
        target = path.parent / f"damaged-{path.stem}-{stamp}-{number}"
    private_folder(target)
    for suffix in ("", "-wal", "-shm", "-damaged"):
        source = path.with_name(path.name + suffix)
        if source.exists():
            source.replace(target / source.name)
    return target
