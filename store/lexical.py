"""Finding chunks by their words: any text a person types becomes a safe FTS5 expression, ranked by BM25.

What must stay true: no query text is ever an error, and none of it is read as an operator: every term reaches
FTS5 as a quoted string. A word counts in the heading column more than in the body.
"""

from __future__ import annotations

from collections.abc import Sequence

import regex

from ragd.store.filters import Condition
from ragd.store.lexical_table import name
from ragd.store.snapshot import Snapshot
from ragd.store.sqlite import Value
from ragd.store.types import Generation

MAX_TERMS = 64
"""Terms of one query; the rest of a longer text is not looked at. Each term costs one walk over its
postings."""

LARGE_CHUNKS = 5_000
"""From so many chunks on, words that are nearly everywhere are not looked for."""

HEADING_WEIGHT = 2.0
BODY_WEIGHT = 1.0

# Runs of letters, digits and marks, with what joins the parts of one identifier, number or address inside.
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:[_.\-'’/:+#][\p{L}\p{M}\p{N}]+)*")
_PART = regex.compile(r"[\p{L}\p{M}\p{N}]+")
# The borders inside an identifier: fooBar, HTTPServer, utf8 (as written by most languages' style guides).
_CAMEL = regex.compile(r"\p{Lu}+(?!\p{Ll})\p{M}*|\p{Lu}?[\p{Ll}\p{M}]+|\p{N}+|[\p{L}\p{M}]+")
_UNSPACED = regex.compile(
    r"[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]"
)

# Words so frequent that they say nothing about a passage but cost a walk over nearly every chunk. They are
# left out only while other terms remain.
_FREQUENT = frozenset(
    """a an and are as at be been but by can could did do does for from had has have how i if in into is it
    its me my not of on or our shall should so than that the their them then there these they this those to
    was we were what when where which who whom whose why will with would you your der die das den dem des ein
    eine einer eines einem einen und oder ist sind war wie was wer wo von zu mit für auf le la les un une des
    du de et ou est sont dans pour que qui sur avec el los las una unos y o es son en por con para
    como""".split()  # noqa: SIM905 - a list of words reads as words
)


def query_terms(query: str) -> list[str]:
    """The terms of a query in order, each once: its words, the parts of its identifiers, joined words as
    phrases.

    Frequent words are left out while other terms remain. At most MAX_TERMS.
    """
    terms: dict[str, str] = {}
    frequent: dict[str, str] = {}
    for match in _WORD.finditer(query):
        word = match.group()
        for term in (word, *_parts(word)):
            key = term.casefold()
            (frequent if key in _FREQUENT else terms).setdefault(key, term)
        if len(terms) >= MAX_TERMS:
            break
    return list((terms or frequent).values())[:MAX_TERMS]


def match_terms(query: str) -> list[str]:
    """The terms of a query as FTS5 reads them: quoted strings, which hold no operators.

    Text of scripts written without spaces is also matched where it begins a longer run.
    """
    pieces = []
    for term in query_terms(query):
        quoted = '"' + term.replace('"', '""') + '"'
        pieces.append(quoted + " *" if _UNSPACED.search(term) else quoted)
    return pieces


def telling_terms(snapshot: Snapshot, generation: Generation, terms: Sequence[str]) -> list[str]:
    """The terms without those that stand in more than a quarter of a large catalog's chunks, if others
    remain.

    Ranking costs about a microsecond a match, and a word that is nearly everywhere tells nearly nothing (its
    weight in BM25 is below ln 3); looking whether it is costs a hundredth of that.
    """
    rows = snapshot.execute("SELECT coalesce(sum(chunks), 0) FROM tally WHERE generation = ?", (generation.id,))
    most = sum(int(row[0]) for row in rows) // 4
    if most * 4 < LARGE_CHUNKS or len(terms) < 2:
        return list(terms)
    table = name(generation.id)
    sql = f"SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT 1 OFFSET ?"
    telling = [term for term in terms if next(snapshot.execute(sql, (term, most)), None) is None]
    return telling or list(terms)


def best_matching(
    snapshot: Snapshot, generation: Generation, terms: Sequence[str], depth: int, condition: Condition
) -> list[tuple[str, float]]:
    """The `depth` live chunks that match best and meet the condition, with their BM25 score (greater is
    better), best first. A chunk matches when it has one of the terms. Ties are broken by the order of the
    catalog."""
    if not terms:
        return []
    expression = " OR ".join(terms)
    table = name(generation.id)
    rank = f"bm25({table}, {HEADING_WEIGHT}, {BODY_WEIGHT})"
    if condition.is_selective:
        sql = (
            f"SELECT chunk.id, {rank} AS score FROM {table} JOIN chunk ON chunk.rowid = {table}.rowid "
            f"JOIN file ON file.id = chunk.file_id WHERE {table} MATCH ? AND {condition.sql} "
            "ORDER BY score, chunk.rowid LIMIT ?"
        )
        bindings: tuple[Value, ...] = (expression, *condition.bindings, depth)
    else:
        # Every live chunk meets it: rank inside the lexical table alone and read only the best rows.
        best = f"SELECT rowid, {rank} AS score FROM {table} WHERE {table} MATCH ? ORDER BY score, rowid LIMIT ?"
        sql = (
            f"SELECT chunk.id, best.score FROM ({best}) AS best JOIN chunk ON chunk.rowid = best.rowid "
            "ORDER BY best.score, chunk.rowid"
        )
        bindings = (expression, depth)
    return [(str(chunk_id), -float(score)) for chunk_id, score in snapshot.execute(sql, bindings)]


def _parts(word: str) -> list[str]:
    """What a joined word or an identifier is made of; nothing for a plain word."""
    pieces = _PART.findall(word)
    parts = [part for piece in pieces for part in _CAMEL.findall(piece)]
    joined = [piece for piece in pieces if piece != word]
    return [part for part in dict.fromkeys((*joined, *parts)) if part != word and len(part) > 1]
