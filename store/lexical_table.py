"""The lexical table of each generation: FTS5 without content of its own, rowid = chunk.rowid.

What must stay true: it holds exactly the chunks of its generation, built with the tokenizer whose
fingerprint the generation's row names. (FTS5 contentless-delete tables: sqlite.org/fts5.html, section 4.4.3.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ragd.store.rows import heading
from ragd.store.sqlite import Connection

TOKENIZER = "unicode61 remove_diacritics 2"

Entry = tuple[int, str, str]
"""rowid, heading (title and section path), text (the body)"""


def name(generation: int) -> str:
    """The table's name; columns `heading` and `text`."""
    return f"lexical_{generation:d}"


def create(link: Connection, generation: int) -> None:
    link.execute(
        f"CREATE VIRTUAL TABLE {name(generation)} USING fts5("
        f"heading, text, content='', contentless_delete=1, tokenize='{TOKENIZER}')"
    )


def drop(link: Connection, generation: int) -> None:
    """Idempotent."""
    link.execute(f"DROP TABLE IF EXISTS {name(generation)}")


def insert(link: Connection, generation: int, entries: Iterable[Entry]) -> None:
    link.executemany(f"INSERT INTO {name(generation)} (rowid, heading, text) VALUES (?, ?, ?)", entries)


def delete(link: Connection, generation: int, rowids: Sequence[int]) -> None:
    link.executemany(f"DELETE FROM {name(generation)} WHERE rowid = ?", [(rowid,) for rowid in rowids])


def rebuild(link: Connection, generation: int) -> None:
    """Make the table anew from the stored texts: its tokenizer has changed."""
    drop(link, generation)
    create(link, generation)
    rows: Iterable[Sequence[Any]] = link.execute(
        "SELECT chunk.rowid, file.title, chunk.section, chunk.text"
        " FROM chunk JOIN file ON file.id = chunk.file_id WHERE chunk.generation = ?",
        (generation,),
    )
    insert(link, generation, ((rowid, heading(title, section), text) for rowid, title, section, text in rows))
    link.execute("UPDATE generation SET lexical = ? WHERE id = ?", (TOKENIZER, generation))
