"""Opening the catalog: whole or set aside, with what earlier processes left behind tidied up.

What must stay true: a damaged catalog is never deleted and never used; the vector cache beside it survives
it, so that indexing again embeds nothing again.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from ragd.store import lexical_table
from ragd.store.catalog import Catalog
from ragd.store.errors import DamagedError
from ragd.store.sqlite import Database, migrations_of, set_aside
from ragd.store.vector_cache import VectorCache

_CHECKED_BYTES = 128 * 1024 * 1024
"""A catalog up to this size is read through after an unclean stop (under a second). Damage in a larger one shows
when it is read; the next start is then told of it."""


def open_catalog(path: Path, cache_path: Path, stamp: str) -> tuple[Database, list[str]]:
    """The catalog and what a person should know. A damaged one is set aside and an empty one takes its
    place."""
    problems: list[str] = []
    if cache_path.exists() and (not path.exists() or path.stat().st_size == 0):
        # The cache is made after the catalog, so there was one: it is lost, not new.
        if path.exists():
            set_aside(path, stamp)
        problems.append("the catalog was lost; all files are indexed again (texts keep their vectors)")
    try:
        database = Database(path, migrations_of("catalog"))
        damage = None if _is_sound(database) else "it did not pass its check"
        if damage:
            database.close()
    except DamagedError as error:
        damage = str(error)
    if damage:
        target = set_aside(path, stamp)
        problems.append(
            f"the catalog was damaged ({damage}) and set aside as {target}; all files are indexed again"
            " (texts keep their vectors)"
        )
        database = Database(path, migrations_of("catalog"))
    return database, problems


def _is_sound(database: Database) -> bool:
    """Quick after a clean stop; else SQLite's own check unless the file is very large."""
    try:
        with database.read() as link:
            is_clean = link.execute("SELECT 1 FROM meta WHERE key = 'clean_stop'").fetchone() is not None
            for table in ("generation", "file", "chunk", "pending", "tally"):
                link.execute(f"SELECT * FROM {table} LIMIT 1").fetchall()
    except DamagedError:
        return False
    if database.damage_was_seen:
        if not database.sound():
            return False
        database.forget_damage()
        return True
    return is_clean or database.path.stat().st_size > _CHECKED_BYTES or database.sound()


def installation_name(catalog: Catalog, cache: VectorCache) -> str:
    """A name that stays when one of catalog and cache is lost; collections carry it."""
    kept, cached = catalog.meta("installation"), cache.meta("installation")
    name = kept or cached or secrets.token_hex(4)
    if kept is None:
        catalog.set_meta("installation", name)
    if cached is None:
        cache.set_meta("installation", name)
    return name


def forget_epochs(catalog: Database) -> None:
    """The queries of earlier processes are over."""
    with catalog.write(durable=False) as link:
        link.execute("UPDATE pending SET epoch = 0 WHERE epoch > 0")
        link.execute("UPDATE generation SET epoch = 0 WHERE epoch > 0")


def rebuild_lexical_tables(catalog: Database) -> None:
    """Make those anew that another tokenizer was used for; each in a transaction of its own."""
    with catalog.read() as link:
        rows = link.execute(
            "SELECT id FROM generation WHERE lexical <> ? AND state <> 'retired'", (lexical_table.TOKENIZER,)
        ).fetchall()
    for row in rows:
        with catalog.write() as link:
            lexical_table.rebuild(link, int(str(row[0])))
