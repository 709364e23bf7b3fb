"""The plan: what a walk saw x what the catalog remembers -> one action a file, each with its reason. Pure.

What must stay true: a file is forgotten only when its folder was really listed, the root was healthy after
the walk, and not half of the root went at once without a trace; adds come before forgets; an unchanged file
costs nothing.

Two sorted lists are merged (both in the order of the paths' bytes), as a reconciler does that has the disk on
one side and its own memory on the other. A file that only the walk has is new, one that only the catalog has
is absent, one that both have is compared:

* unchanged: size, mtime, ctime and inode are equal and the row is trusted. Its recipe decides: another one
  means cutting again. A row that was skipped or failed rests until its bytes or the recipe change or its
  pause is over.
* anything else is read by the worker; where only its stat differs (equal hash, equal recipe) that was a
  touch.

An absent and a new file that are one inode, or have equal size and mtime, are a move if the hash agrees as
well, which the worker finds out. Everything yields as early as it can; only new files (up to `MOVE_WINDOW`)
and absent ones wait for the end of the lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from ragd.daemon.files.ignore import Decision
from ragd.daemon.files.walk import Seen
from ragd.store.rows import PlanRow, stat_key
from ragd.store.types import FileStat

TRUST_AFTER_NS = 2_000_000_000
"""A file changed less than this before it was read may change again within the same tick of the clock."""

MASS_DELETION_FILES = 20
"""Fewer absent files than this are never held, whatever their share (unless the root was replaced)."""

MOVE_WINDOW = 20_000
"""New files that wait for an absent twin; with more of them the first ones are indexed without waiting."""


@dataclass(frozen=True, slots=True)
class Action:
    """What to do for one file.

    * index: read it, then cut and commit. If its hash is `touch_if_hash`, only its stat is new
    * move: as index, and `moved_from` goes in the same commit; if its hash is `touch_if_hash` it is that file
    * skip: record the reason (too_large, not_local) without opening it; its chunks go
    * forget: it is gone, or ignored now

    `reason`: for index new, changed, untrusted, recipe, retry, limit; for move moved; for skip the reason
    code; for forget absent or the reason code of the rule (then `detail` is the rule).
    """

    kind: str
    path: bytes
    reason: str
    stat: FileStat | None = None
    touch_if_hash: bytes | None = None
    moved_from: bytes | None = None
    detail: str = ""


@dataclass(slots=True)
class PlanInput:
    """What a plan is made from.

    `seen` and `rows` are in the order of the paths' bytes and may be read lazily; `rows` are those of the
    walked places, of one generation. The callables are asked at the end, when the walk is over.
    """

    seen: Iterable[Seen]
    rows: Iterable[PlanRow]
    recipe_of: Callable[[bytes], str]
    """The fingerprint of how a path would be cut today."""
    now_ns: int
    """Wall clock at the start of the walk."""
    max_bytes: int
    covers: Callable[[bytes], bool]
    """Whether the walk would have yielded the path if it were there (`Walk.covers`)."""
    why_ignored: Callable[[bytes], Decision | None]
    """Why an absent path is left out, if a rule says so (`IgnoreRules.explainer()`)."""
    root_is_healthy: Callable[[], bool]
    saw_deleted: Callable[[bytes], bool] = lambda _: False
    """Whether an event told of the deletion (`Evidence.covers`)."""
    files_in_root: int = 0
    """Rows of the whole root: what half of it is."""
    replaced: bool = False
    """Another folder stands where the root was: any half is then too much."""
    confirmed: bool = False
    """A person confirmed the deletions of this root."""


@dataclass(slots=True)
class Plan:
    """Iterate it once for the actions; the tallies are complete afterwards."""

    given: PlanInput
    seen: int = 0
    unchanged: int = 0
    protected: int = 0
    """Absent files that stay, because their folder or the root could not be looked at."""
    held: list[bytes] = field(default_factory=list)
    """Absent files that stay, because so many went at once: the root's state is mass_deletion."""

    def __iter__(self) -> Iterator[Action]:
        waiting: list[Seen] = []
        absent: list[PlanRow] = []
        for seen, row in merge(self.given.seen, self.given.rows):
            if seen is None:
                if row is not None:
                    absent.append(row)
                continue
            self.seen += 1
            if row is not None:
                action = self._compare(seen, row)
            elif len(waiting) < MOVE_WINDOW and self.given.files_in_root:
                waiting.append(seen)
                continue
            else:
                action = self._new(seen)
            if action is None:
                self.unchanged += 1
            else:
                yield action
        yield from self._finish(waiting, absent)

    @property
    def problem(self) -> str:
        """For a person, when deletions are held; else ""."""
        return held_problem(len(self.held), self.given.files_in_root)

    def _new(self, seen: Seen) -> Action:
        return self._unreadable(seen) or Action("index", seen.path, "new", seen.stat)

    def _unreadable(self, seen: Seen) -> Action | None:
        """Why a file is not opened at all."""
        if not seen.local:
            return Action("skip", seen.path, "not_local", seen.stat, detail=f"{seen.stat.size} bytes, in the cloud")
        if seen.stat.size > self.given.max_bytes:
            return Action("skip", seen.path, "too_large", seen.stat, detail=f"{seen.stat.size} bytes")
        return None

    def _compare(self, seen: Seen, row: PlanRow) -> Action | None:
        same = is_same(seen.stat, row)
        skip = self._unreadable(seen)
        if skip is not None:
            return None if same and row.state == "skipped" and row.reason == skip.reason else skip
        if row.state == "skipped" and row.reason in ("too_large", "not_local"):
            return Action("index", seen.path, "limit" if same else "changed", seen.stat)
        if row.recipe and row.recipe != self.given.recipe_of(seen.path):
            return Action("index", seen.path, "recipe" if same else "changed", seen.stat)
        known = row.content_hash or None
        if not same:
            return Action("index", seen.path, "changed", seen.stat, touch_if_hash=known)
        if row.retry_at_ns is not None and row.retry_at_ns <= self.given.now_ns:
            return Action("index", seen.path, "retry", seen.stat)
        if not row.trusted and row.content_hash:
            return Action("index", seen.path, "untrusted", seen.stat, touch_if_hash=known)
        return None

    def _finish(self, waiting: list[Seen], absent: list[PlanRow]) -> Iterator[Action]:
        gone, ignored = self._believed(absent)
        moves = find_moves(waiting, gone)
        for seen in waiting:
            source = moves.get(seen.path)
            action = self._new(seen)
            if source is not None and action.kind == "index":
                action = Action(
                    "move",
                    seen.path,
                    "moved",
                    seen.stat,
                    touch_if_hash=source.content_hash,
                    moved_from=source.path,
                )
            else:
                moves.pop(seen.path, None)
            yield action
        moved = {row.path for row in moves.values()}
        rest = [row.path for row in gone if row.path not in moved]
        held = self._too_many(rest)
        self.held.extend(path for path in rest if path in held)
        for path, decision in ignored:
            yield Action("forget", path, decision.code, detail=str(decision))
        for path in rest:
            if path not in held:
                yield Action("forget", path, "absent")

    def _believed(self, absent: list[PlanRow]) -> tuple[list[PlanRow], list[tuple[bytes, Decision]]]:
        """Of the absent files: those that are gone, and those that a rule leaves out now."""
        if absent and not self.given.root_is_healthy():
            self.protected += len(absent)
            return [], []
        gone: list[PlanRow] = []
        ignored: list[tuple[bytes, Decision]] = []
        for row in absent:
            decision = self.given.why_ignored(row.path)
            if decision is not None:
                ignored.append((row.path, decision))
            elif self.given.covers(row.path):
                gone.append(row)
            else:
                self.protected += 1
        return gone, ignored

    def _too_many(self, gone: list[bytes]) -> frozenset[bytes]:
        """The absent files that are held: nothing told of their deletion, and they are over half of the
        root."""
        if self.given.confirmed:
            return frozenset()
        silent = [path for path in gone if not self.given.saw_deleted(path)]
        least = 1 if self.given.replaced else MASS_DELETION_FILES
        suspicious = len(silent) >= least and 2 * len(silent) > self.given.files_in_root
        return frozenset(silent) if suspicious else frozenset()


def held_problem(held: int, files_in_root: int) -> str:
    """What is said of a root of which so many files are held; "" for none."""
    if not held:
        return ""
    return (
        f"{held} of {files_in_root} files vanished at once without a trace; "
        "they stay in the index until they come back, or until `ragd forget --confirm ROOT`"
    )


def is_same(seen: FileStat, known: PlanRow) -> bool:
    """Size, both times and the inode, as the catalog keeps them. The device number is left out: it may change with
    every mount."""
    plain = (
        seen.size == known.size
        and seen.mtime_ns == known.mtime_ns
        and seen.ctime_ns == known.ctime_ns
        and seen.inode == known.inode
    )
    return plain or stat_key(seen)[:4] == known[1:5]


def is_trusted(stat: FileStat, now_ns: int) -> bool:
    """Whether an equal stat will prove an unchanged file: neither time is within 2 s of `now_ns`, the wall
    clock when the walk began or the file was opened (the racy-timestamp rule of git and borg). A time in the
    future, as unpacked archives have, is no tick that could come twice."""
    return min(abs(now_ns - stat.mtime_ns), abs(now_ns - stat.ctime_ns)) >= TRUST_AFTER_NS


def merge(seen: Iterable[Seen], rows: Iterable[PlanRow]) -> Iterator[tuple[Seen | None, PlanRow | None]]:
    """Pair two lists by path. Raises ValueError when one of them is out of order: then nothing could be concluded."""
    left, right = iter(seen), iter(rows)
    one, two = next(left, None), next(right, None)
    while one is not None or two is not None:
        if two is None or (one is not None and one.path < two.path):
            yield one, None
            one = _next(left, one)
        elif one is None or two.path < one.path:
            yield None, two
            two = _next(right, two)
        else:
            yield one, two
            one, two = _next(left, one), _next(right, two)


_Entry = TypeVar("_Entry", Seen, PlanRow)


def _next(entries: Iterator[_Entry], last: _Entry | None) -> _Entry | None:
    entry = next(entries, None)
    if entry is not None and last is not None and entry.path <= last.path:
        raise ValueError(f"paths out of order: {entry.path!r} after {last.path!r}")
    return entry


def find_moves(new: list[Seen], gone: list[PlanRow]) -> dict[bytes, PlanRow]:
    """New path -> the absent row it may be: one inode of equal size first, then equal size and mtime, one to
    one."""
    left = {row.path: row for row in gone if row.content_hash}
    by_inode: dict[tuple[int, int, int], list[PlanRow]] = {}
    by_times: dict[tuple[int, int], list[PlanRow]] = {}
    for row in reversed(list(left.values())):
        by_inode.setdefault((row.device, row.inode, row.size), []).append(row)
        by_times.setdefault((row.size, row.mtime_ns), []).append(row)
    moves: dict[bytes, PlanRow] = {}
    for by_identity in (True, False):
        for seen in new:
            if seen.path in moves:
                continue
            stat = seen.stat
            candidates = (
                by_inode.get((stat.device, stat.inode, stat.size), [])
                if by_identity
                else by_times.get((stat.size, stat.mtime_ns), [])
            )
            while candidates and candidates[-1].path not in left:
                candidates.pop()
            if candidates:
                moves[seen.path] = left.pop(candidates.pop().path)
    return moves
