"""From a task to a change: read the file, see whether its content is new, have it cut.

What must stay true: nothing here writes; whatever happens to one file becomes a change of that file (or "look
again"), never an exception that stops another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from ragd.chunkers.records import Cut, SourceFile
from ragd.daemon.files import paths
from ragd.daemon.files.ignore import Decision, Explainer
from ragd.daemon.files.read import FileBytes, NotRead, read_file
from ragd.daemon.files.walk import Walk
from ragd.daemon.parsing.pool import Parser
from ragd.daemon.parsing.wire import ParseFailedError, ParseJob
from ragd.daemon.plan import is_trusted
from ragd.daemon.recipes import Recipes
from ragd.daemon.root_set import RootSet
from ragd.daemon.task_queue import Task
from ragd.store.types import Change, FailFile, FileRow, FileStat, ForgetFile, IndexFile, TouchFile

UNSTABLE_TRIES = 5
"""A file that is written all the time is taken as it is after so many tries."""
_FIRST_PAUSE_S = 30
_LONGEST_PAUSE_S = 3600
_EXPLAINER_FILES = 5_000
_NO_STAT = FileStat(0, 0, 0, 0, 0)


@dataclass(slots=True)
class Prepared:
    """What became of a task: the changes to commit, and how it counts once they are committed.

    `counts_as` is a counter of `sync` (indexed, unchanged, moved, forgotten, skipped, failed), or "again": the file
    is to be looked at once more, and `changes` is empty.
    """

    task: Task
    counts_as: str
    changes: list[Change] = field(default_factory=list)
    reason: str = ""
    detail: str = ""
    texts: int = 0


@dataclass(slots=True)
class Begun:
    """A task under way: prepared already, or waiting for its cut."""

    task: Task
    prepared: Prepared | None = None
    read: FileBytes | None = None
    content_hash: bytes = b""
    trusted: bool = False
    future: Future[Cut] | None = None
    is_superseded: bool = False
    """A newer look at the same file is under way: this one is not committed."""
    is_walked_over: bool = False
    """Its place was walked since it was read: what that walk concluded did not know of this file."""
    saw_deleted: bool = False
    """An event told of its deletion by then."""

    @property
    def size_bytes(self) -> int:
        return 0 if self.read is None else len(self.read.data)


class Indexer:
    """For one thread. `row_of` is what the catalog knows of a file now."""

    def __init__(
        self,
        roots: RootSet,
        recipes: Recipes,
        parser: Parser,
        row_of: Callable[[str, bytes], FileRow | None],
        *,
        max_bytes: int,
        clock_ns: Callable[[], int],
    ) -> None:
        self._roots = roots
        self._recipes = recipes
        self._parser = parser
        self._row_of = row_of
        self._max_bytes = max_bytes
        self._clock_ns = clock_ns
        self._unstable: dict[tuple[str, bytes], int] = {}
        self._ignored: dict[str, Explainer] = {}
        self.files_read = 0

    def rules_may_differ(self, root: str) -> None:
        """A place of the root was walked: what was planned before may be ignored by now."""
        self._ignored.pop(root, None)

    def _why_ignored(self, task: Task) -> Decision | None:
        """By the ignore files as they stood at the last walk, or since."""
        if self.files_read % _EXPLAINER_FILES == 0:
            self._ignored.clear()  # it keeps every folder it went through
        if task.root not in self._ignored:
            self._ignored[task.root] = self._roots.by_name[task.root].ignore.explainer()
        return self._ignored[task.root](task.action.path, is_folder=False)

    def begin(self, task: Task) -> Begun:
        """Read the file if there is something to read, and hand it to a parsing child if its content is new."""
        action, root = task.action, self._roots.by_name[task.root].rules
        if action.kind == "forget":
            if action.reason == "absent" and self._is_there(task.root, action.path):
                return Begun(task, Prepared(task, "again", reason="came back"))
            return Begun(task, Prepared(task, "forgotten", [ForgetFile(task.root, action.path)]))
        ignored = self._why_ignored(task)
        if ignored is not None:
            return Begun(task, Prepared(task, "again", self._gone(task), "ignored", str(ignored)))
        if action.kind == "skip":
            return Begun(task, self._skipped(task, action.reason, action.detail, action.stat or _NO_STAT))
        opened_ns = self._clock_ns()
        self.files_read += 1
        tries = self._unstable.get(task.key, 0)
        read = read_file(root, action.path, self._max_bytes, accept_growing=tries >= UNSTABLE_TRIES)
        if isinstance(read, NotRead):
            return Begun(task, self._not_read(task, read))
        self._unstable.pop(task.key, None)
        content_hash = hashlib.blake2b(read.data, digest_size=16).digest()
        trusted = is_trusted(read.stat, opened_ns)
        if action.kind == "index" and content_hash == action.touch_if_hash and self._is_known(task, content_hash):
            touch = TouchFile(task.root, action.path, read.stat, trusted)
            return Begun(task, Prepared(task, "unchanged", [touch]))
        job = ParseJob(SourceFile(read.data, task.root, action.path), self._recipes.settings(task.root, action.path))
        return Begun(
            task,
            read=read,
            content_hash=content_hash,
            trusted=trusted,
            future=self._parser.submit(job),
        )

    def _is_known(self, task: Task, content_hash: bytes) -> bool:
        """Whether the catalog, as it is now, has this very content: since the plan was made, another version of the
        file may have been committed."""
        row = self._row_of(task.root, task.action.path)
        return (
            row is not None
            and row.state != "failed"
            and not row.stale
            and row.content_hash == content_hash
            and row.recipe == self._recipes.of_root(task.root)(task.action.path)
        )

    def finish(self, begun: Begun) -> Prepared:
        """Wait for the cut. Raises ParsePoolError when no file can be parsed at all."""
        if begun.prepared is not None:
            return begun.prepared
        if begun.future is None or begun.read is None:
            raise ValueError("the task was not begun")
        task, action = begun.task, begun.task.action
        try:
            cut = begun.future.result()
        except ParseFailedError as error:
            prepared = self._failed(task, error.reason, error.detail, begun.read.stat, begun.content_hash)
        else:
            index = IndexFile(task.root, action.path, begun.read.stat, begun.trusted, begun.content_hash, cut)
            counts_as = "indexed" if cut.skipped is None else "skipped"
            prepared = Prepared(task, counts_as, [index], cut.skipped or "", cut.detail, len(cut.chunks))
        if action.moved_from is not None:
            # One commit: a search sees the file at its old place or at its new one, never at none.
            prepared.changes += self._gone(task)
            if prepared.counts_as == "indexed" and begun.content_hash == action.touch_if_hash:
                prepared.counts_as = "moved"
        return prepared

    def _skipped(self, task: Task, reason: str, detail: str, stat: FileStat) -> Prepared:
        recipe = self._recipes.of_root(task.root)(task.action.path)
        cut = Cut(type="", chunker="", title="", recipe=recipe, skipped=reason, detail=detail)
        change = IndexFile(task.root, task.action.path, stat, is_trusted(stat, self._clock_ns()), b"", cut)
        return Prepared(task, "skipped", [change], reason, detail)

    def _not_read(self, task: Task, read: NotRead) -> Prepared:
        path = task.action.path
        gone = self._gone(task)
        if read.code == "gone":
            # The next walk of the place tells; here only the file that was to be replaced may go.
            return Prepared(task, "again", gone, "gone", read.detail)
        if read.code == "unstable":
            tries = self._unstable[task.key] = self._unstable.get(task.key, 0) + 1
            if tries <= 2 * UNSTABLE_TRIES:
                return Prepared(task, "again", gone, "unstable", read.detail)
            del self._unstable[task.key]
        stat = read.stat or task.action.stat or _NO_STAT
        if read.code in ("not_regular", "not_local", "too_large", "outside_root"):
            prepared = self._skipped(task, read.code, read.detail, stat)
        else:
            retry = self._retry_at(task.root, path) if read.may_pass else None
            failed = FailFile(task.root, path, stat, read.code, read.detail, retry_at_ns=retry)
            prepared = Prepared(task, "failed", [failed], read.code, read.detail)
        prepared.changes += gone
        return prepared

    def _gone(self, task: Task) -> list[Change]:
        """The place a file moved from, unless something stands there again."""
        source = task.action.moved_from
        if source is None or self._is_there(task.root, source):
            return []
        return [ForgetFile(task.root, source)]

    def _is_there(self, root: str, path: bytes) -> bool:
        """Whether a walk would find the file now, or could not tell. Not whether the name is taken: a folder, a pipe
        or a link may stand there, and what a walk does not find would come back here for ever."""
        walk = Walk(self._roots.by_name[root].ignore, (path,))
        return any(seen.path == path for seen in walk) or bool(walk.unread)

    def broken(self, task: Task, error: Exception) -> Prepared:
        """A file over which the daemon itself stumbled: recorded like one that cannot be parsed, and tried again."""
        stat = task.action.stat or _NO_STAT
        detail = f"{type(error).__name__}: {error}"
        retry = self._retry_at(task.root, task.action.path)
        change = FailFile(task.root, task.action.path, stat, "parse_error", detail, retry_at_ns=retry)
        return Prepared(task, "failed", [change], "parse_error", detail)

    def _failed(self, task: Task, reason: str, detail: str, stat: FileStat, content_hash: bytes) -> Prepared:
        path = task.action.path
        recipe = self._recipes.of_root(task.root)(path)
        change = FailFile(task.root, path, stat, reason, detail, content_hash, recipe)
        return Prepared(task, "failed", [change], reason, detail)

    def unembedded(self, prepared: Prepared, error: str) -> Prepared:
        """The file's texts got no vector: it is as it was, and is tried again after a pause."""
        task = prepared.task
        stat = task.action.stat or _NO_STAT
        retry = self._retry_at(task.root, task.action.path)
        failed = FailFile(task.root, task.action.path, stat, "embed_error", error, retry_at_ns=retry)
        return Prepared(task, "failed", [failed], "embed_error", error)

    def _retry_at(self, root: str, path: bytes) -> int:
        """Growing pauses: the cause may pass."""
        row = self._row_of(root, path)
        doublings = 0 if row is None else min(16, row.attempts)
        pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S << doublings)
        return self._clock_ns() + pause_s * 1_000_000_000

    def shown(self, task: Task) -> str:
        """The absolute path of a task's file, for people."""
        return paths.show(paths.join(self._roots.by_name[task.root].rules.path, task.action.path))
