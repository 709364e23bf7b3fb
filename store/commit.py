"""The commit protocol: the only place where the order of writes matters.

    fill   vector cache: every new text has its vector, batch by batch
    (a)    catalog, synced: new ids -> pending
    (b)    vector index: upsert them
    (c)    catalog, one synced transaction: files, chunks, lexical rows; new ids leave pending, replaced ids
    enter it (d)    vector index: delete what is pending and no query can still need
    (e)    catalog: clear pending

What must stay true: an id that may be in the vector index and is not live is in `pending`, at every moment
and after a kill at any moment. `steps` is called after each durable step, so that tests can stop there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ragd.store import changes
from ragd.store.diff import FileDiff, NewChunk, diff_file
from ragd.store.epochs import Epochs
from ragd.store.errors import StoreError
from ragd.store.filling import Filled, Pace, Text, fill
from ragd.store.rows import GENERATION_COLUMNS, generation_of
from ragd.store.sqlite import Database, batches, marks
from ragd.store.types import (
    Change,
    CommitOutcome,
    Embedder,
    FailFile,
    ForgetFile,
    Generation,
    IndexFile,
    TouchFile,
    VectorIndex,
    VectorRow,
)
from ragd.store.vector_cache import ModelVectors, VectorCache

_ROWS_A_BLOCK = 500
_IDS_A_DELETE = 1_000


@dataclass(slots=True)
class _Group:
    """Changes of different files, and what they come to."""

    changes: list[Change] = field(default_factory=list)
    diffs: list[FileDiff] = field(default_factory=list)


class Committer:
    """For one thread at a time: its caller holds the writer's lock."""

    def __init__(
        self,
        catalog: Database,
        cache: VectorCache,
        index: Callable[[], VectorIndex],
        epochs: Epochs,
        pace: Pace,
        *,
        documents: bool,
        clock_ns: Callable[[], int],
        steps: Callable[[str], None],
    ) -> None:
        self._catalog = catalog
        self._cache = cache
        self._index = index
        self._epochs = epochs
        self._pace = pace
        self._documents = documents
        self._clock_ns = clock_ns
        self._steps = steps

    def commit(self, generation: Generation, wanted: Sequence[Change], embedder: Embedder | None) -> CommitOutcome:
        """All changes in one run of the protocol: two synced transactions, however many files there are.

        Repeating it after an error or a kill is harmless. Raises StoreError, ModelError,
        InterruptedCommitError; after any of them each file is as it was or as it was to become. Of two
        changes of one file the later wins.
        """
        if embedder is not None and embedder.identity.fingerprint != generation.identity:
            raise ValueError(f"generation {generation.id} belongs to another model than {embedder.identity.name}")
        outcome = CommitOutcome()
        for group in _groups(wanted):
            self._commit_group(generation, group, embedder, outcome)
        self.drain()
        return outcome

    def _commit_group(
        self, generation: Generation, group: _Group, embedder: Embedder | None, outcome: CommitOutcome
    ) -> None:
        vectors = self._cache.of(generation.identity, generation.dimension)
        self._compare(generation, group, outcome)
        filled = fill(vectors, embedder, _texts(group.diffs), self._pace, self._steps)
        outcome.texts_embedded += filled.texts
        outcome.tokens_embedded += filled.tokens
        outcome.seconds_embedding += filled.seconds
        _leave_out_unembedded(group, filled, outcome)
        if any(diff.new or diff.rewrite for diff in group.diffs):
            with self._catalog.write() as link:
                changes.announce(link, generation.id, group.diffs)
            self._steps("a")
            self._write_rows(generation, vectors, [row for diff in group.diffs for row in diff.to_write()])
        self._write_catalog(generation, group, outcome)

    def _compare(self, generation: Generation, group: _Group, outcome: CommitOutcome) -> None:
        with self._catalog.read() as link:
            for change in group.changes:
                if not isinstance(change, IndexFile):
                    continue
                found = changes.old_file(link, generation.id, change.root, change.path)
                rows = () if found is None else changes.old_chunks(link, found[0])
                try:
                    group.diffs.append(diff_file(change, None if found is None else found[1], rows))
                except ValueError as error:  # UnicodeEncodeError too: the cut cannot be stored
                    outcome.unembedded.append((change.root, change.path, str(error)))

    def _write_rows(self, generation: Generation, vectors: ModelVectors, rows: list[NewChunk]) -> None:
        """(b), a block at a time."""
        if not rows:
            return
        index = self._index()
        index.create(generation.collection, generation.dimension)
        for block in batches(rows, _ROWS_A_BLOCK):
            found = vectors.get_many([row.text_hash for row in block])
            if any(row.text_hash not in found for row in block):
                raise StoreError("the vector cache lost vectors that were just written; the commit is to be repeated")
            index.upsert(
                generation.collection,
                [
                    VectorRow(
                        row.id,
                        found[row.text_hash],
                        row.metadata,
                        row.text.embedded if self._documents else None,
                    )
                    for row in block
                ],
            )
            self._steps("b block")

    def _write_catalog(self, generation: Generation, group: _Group, outcome: CommitOutcome) -> None:
        """(c)"""
        epoch, now_ns, number = self._epochs.next, self._clock_ns(), generation.id
        added = kept = removed = 0
        words = changes.Words()
        with self._catalog.write() as link:
            for diff in group.diffs:
                changes.index_file(link, number, diff, words, epoch=epoch, now_ns=now_ns)
                added, kept, removed = added + len(diff.new), kept + diff.kept, removed + len(diff.removed)
            for change in group.changes:
                if isinstance(change, TouchFile):
                    changes.touch_file(link, number, change)
                elif isinstance(change, FailFile):
                    changes.fail_file(link, number, change)
                elif isinstance(change, ForgetFile):
                    removed += changes.forget_file(link, number, change.root, change.path, words, epoch=epoch)
            words.write(link, number)
            self._steps("c open")
        self._epochs.advance()
        outcome.added += added
        outcome.kept += kept
        outcome.removed += removed
        self._steps("c")

    def drain(self) -> bool:
        """(d) and (e) for every generation. False when ids are left because a query may still need them."""
        while True:
            with self._catalog.read() as link:
                found = link.execute(
                    f"SELECT {GENERATION_COLUMNS} FROM generation WHERE state <> 'retired' AND id ="
                    " (SELECT generation FROM pending WHERE epoch <= ?"
                    " AND generation IN (SELECT id FROM generation WHERE state <> 'retired') LIMIT 1)",
                    (self._epochs.safe,),
                ).fetchone()
                if found is None:
                    left = link.execute(
                        "SELECT 1 FROM pending JOIN generation ON generation.id = generation WHERE state <> 'retired'"
                    ).fetchone()
                    return left is None
                generation = generation_of(found)
                ids = [
                    str(row[0])
                    for row in link.execute(
                        "SELECT id FROM pending WHERE generation = ? AND epoch <= ? LIMIT ?",
                        (generation.id, self._epochs.safe, _IDS_A_DELETE),
                    )
                ]
            index = self._index()
            index.create(generation.collection, generation.dimension)
            index.delete(generation.collection, ids)
            self._steps("d")
            with self._catalog.write(durable=False) as link:
                for batch in batches(ids):
                    link.execute(
                        f"DELETE FROM pending WHERE generation = ? AND id IN ({marks(len(batch))})",
                        (generation.id, *batch),
                    )
            self._steps("e")


def _groups(wanted: Sequence[Change]) -> Iterator[_Group]:
    """In order, cut where a file comes a second time; a group's other order does not matter."""
    group, seen = _Group(), set[tuple[str, bytes]]()
    for change in wanted:
        key = (change.root, change.path)
        if key in seen:
            yield group
            group, seen = _Group(), set()
        seen.add(key)
        group.changes.append(change)
    if group.changes:
        yield group


def _texts(diffs: Sequence[FileDiff]) -> dict[bytes, Text]:
    return {chunk.text_hash: chunk.text for diff in diffs for chunk in diff.to_write()}


def _leave_out_unembedded(group: _Group, filled: Filled, outcome: CommitOutcome) -> None:
    """A file of which one text has no vector stays as it was, whole."""
    if not filled.failed:
        return
    complete = []
    for diff in group.diffs:
        errors = [filled.failed[row.text_hash] for row in diff.to_write() if row.text_hash in filled.failed]
        if errors:
            outcome.unembedded.append((diff.change.root, diff.change.path, errors[0]))
        else:
            complete.append(diff)
    group.diffs = complete
