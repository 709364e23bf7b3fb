"""What is asked about single files and places: get, why, preview, failures, and which place a path means.

What must stay true: only what lies in a root and is visible to the client is ever looked at, and what is not there
and what may not be seen give the same answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence

from ragd.chunkers import decode
from ragd.chunkers.records import SourceFile
from ragd.daemon.backend import Answer
from ragd.daemon.errors import NotFoundError, UsageError
from ragd.daemon.files import paths
from ragd.daemon.files.read import NotRead, kind_of, read_file
from ragd.daemon.parsing.pool import Parser
from ragd.daemon.parsing.wire import ParseFailedError, ParseJob
from ragd.daemon.preview import preview_answer, with_wishes
from ragd.daemon.recipes import Recipes
from ragd.daemon.requests import GetRequest, PreviewRequest
from ragd.daemon.root_set import RootSet, RootState
from ragd.store.errors import PlaceNotFoundError
from ragd.store.gate import Place, visible, visible_roots
from ragd.store.passages import get_chunk, get_lines
from ragd.store.places import candidate_places
from ragd.store.store import Store
from ragd.store.types import Client, FileRow, RootView

FAILURES_SHOWN = 1_000

FilePlace = tuple[RootState, bytes]
"""A root and a path in it."""


def get(store: Store, roots: RootSet, client: Client, request: GetRequest, max_bytes: int) -> Answer:
    """Raises PlaceNotFoundError, FilterError."""
    views = roots.views()

    def read_text(root: RootView, path: bytes) -> Sequence[str] | None:
        return _lines_of(roots.by_name[root.name], path, max_bytes)

    with store.snapshot() as snapshot:
        if request.id is not None:
            return get_chunk(snapshot, client, views, request.id, parent=request.parent, neighbours=request.neighbours)
        for reading in request.readings:
            for root, path in _places(roots, client, reading.path):
                try:
                    return get_lines(
                        snapshot,
                        client,
                        views,
                        root.name,
                        path,
                        read_text=read_text,
                        start=reading.start,
                        end=reading.end,
                    )
                except PlaceNotFoundError:
                    continue
    raise PlaceNotFoundError(f"{request.readings[0].path!r} is not indexed")


def why(
    store: Store, roots: RootSet, client: Client, path: str, is_pending: Callable[[tuple[str, bytes]], bool]
) -> Answer:
    """Whether a path is indexed, and if not, by which rule. Raises NotFoundError for what is in no visible root."""
    best: Answer | None = None
    for root, place in _places(roots, client, path):
        answer = _why_place(store, root, place, is_pending)
        if answer["state"] != "unknown":
            return answer
        best = best or answer
    if best is None or best["reason"] == "absent":
        raise NotFoundError(f"{path!r} is in no root, or there is no such file")
    return best


def _why_place(store: Store, root: RootState, place: bytes, is_pending: Callable[[tuple[str, bytes]], bool]) -> Answer:
    answer: Answer = {
        "path": paths.show(paths.join(root.rules.path, place)),
        "root": root.name,
        "state": "unknown",
        "reason": None,
        "rule": None,
        "chunker": None,
        "detail": None,
    }
    decision = root.ignore.decide(place)
    if decision is not None:
        return answer | {"state": "ignored", "reason": decision.code, "rule": str(decision)}
    row = store.catalog.file_row(store.live.id, root.name, place)
    if is_pending((root.name, place)):
        return answer | {"state": "pending", "chunker": row.chunker if row else None}
    if row is not None:
        return answer | {
            "state": row.state,
            "reason": row.reason or None,
            "detail": row.detail or None,
            "chunker": row.chunker or None,
            "type": row.type,
            "chunks": row.chunk_count,
            "stale": row.stale or root.view().doubts(place, row.stat.mtime_ns),
        }
    try:
        mode = os.lstat(paths.join(root.rules.path, place)).st_mode
    except OSError:
        return answer | {"reason": "absent"}
    kind = kind_of(mode)
    if kind == "folder":
        return answer | {"detail": "a folder; ask about a file in it"}
    if kind != "file":
        return answer | {"state": "skipped", "reason": "not_regular", "detail": kind}
    return answer | {"state": "pending", "detail": "not walked yet"}


def preview(
    roots: RootSet,
    recipes: Recipes,
    parser: Parser,
    client: Client,
    request: PreviewRequest,
    max_bytes: int,
) -> Answer:
    """How a file in a visible root would be cut. Raises NotFoundError, UsageError."""
    for root, place in _places(roots, client, request.path):
        if root.ignore.decide(place) is not None:
            continue
        read = read_file(root.rules, place, max_bytes)
        if isinstance(read, NotRead):
            continue
        settings = with_wishes(recipes.settings(root.name, place), request.chunker, request.settings or {})
        job = ParseJob(SourceFile(read.data, root.name, place), settings)
        try:
            cut = parser.submit(job).result()
        except ParseFailedError as error:
            raise UsageError(f"{request.path} cannot be cut: {error.reason}: {error.detail}") from error
        return preview_answer(paths.show(paths.join(root.rules.path, place)), cut)
    raise NotFoundError(f"{request.path!r} is in no root, or cannot be read")


def failures(store: Store, roots: RootSet, client: Client) -> Answer:
    """The files that failed or were skipped, with their reasons, of the roots the client may see."""
    seen = visible_roots(client, roots.views())

    def listed(state: str) -> list[Answer]:
        rows: list[FileRow] = []
        after: tuple[str, bytes] | None = None
        while len(rows) < FAILURES_SHOWN:
            page = store.catalog.files_in_state(store.live.id, state, after=after)
            if not page:
                break
            rows += [row for row in page if row.root in seen]
            after = (page[-1].root, page[-1].path)
        return [
            {
                "path": paths.show(paths.join(roots.by_name[row.root].rules.path, row.path)),
                "root": row.root,
                "reason": row.reason,
                "detail": row.detail,
                "attempts": row.attempts,
                "stale": row.stale,
            }
            for row in rows[:FAILURES_SHOWN]
        ]

    return {"failures": listed("failed"), "skipped": listed("skipped")}


def places_of(roots: RootSet, client: Client, wanted: Sequence[str]) -> list[tuple[str, bytes]]:
    """The places a sync is asked for; none: every visible root. Raises NotFoundError for what is in no root."""
    seen = visible_roots(client, roots.views())
    if not wanted:
        return [(name, b"") for name in seen]
    places = []
    for path in wanted:
        found = [(root.name, place) for root, place in _places(roots, client, path)]
        if not found:
            raise NotFoundError(f"{path!r} is in no root")
        places.append(found[0])
        places += _roots_below(roots, seen.keys(), found[0])
    return list(dict.fromkeys(places))


def _roots_below(roots: RootSet, seen: Collection[str], place: tuple[str, bytes]) -> list[tuple[str, bytes]]:
    """Roots inside a folder that is synced: they own their files, and the folder was meant whole."""
    root = roots.by_name[place[0]]
    folder = paths.join(root.rules.path, place[1])
    return [
        (other.name, b"")
        for other in roots
        if other is not root and other.name in seen and paths.relative(other.rules.path, folder) is not None
    ]


def root_named(roots: RootSet, client: Client, wanted: str) -> RootState:
    """A root by its name or path. Raises NotFoundError."""
    for root in roots:
        is_meant = wanted in (root.name, root.path_text) or paths.absolute(wanted) == root.rules.path
        if is_meant and visible(client, Place(root.view(), b"")):
            return root
    raise NotFoundError(f"no root is called {wanted!r}")


def place_to_forget(store: Store, roots: RootSet, client: Client, path: str) -> FilePlace:
    """The place whose files that are no longer there are to go. Raises NotFoundError, or UsageError for one that is
    still there: what is on disk is indexed, whatever is forgotten."""
    for root, place in _places(roots, client, path):
        known = next(iter(store.catalog.plan_rows(store.target.id, root.name, place)), None)
        if known is None:
            continue
        if os.path.isfile(paths.join(root.rules.path, place)):
            raise UsageError(f"{path} is still there; to leave it out, add it to .ragdignore or to exclude")
        return root, place
    raise NotFoundError(f"{path!r} is not indexed")


def files_that_went(store: Store, root: RootState, place: bytes) -> list[bytes]:
    """Indexed files at or below a place of which the file system says that nothing is there. What it cannot say
    (an unreadable folder) is no proof."""
    gone: list[bytes] = []
    for row in store.catalog.plan_rows(store.target.id, root.name, place):
        try:
            os.lstat(paths.join(root.rules.path, row.path))
        except (FileNotFoundError, NotADirectoryError):
            gone.append(row.path)
        except OSError:
            continue
    return gone


def _places(roots: RootSet, client: Client, path: str) -> list[FilePlace]:
    """What a path can mean, likeliest first, in visible roots alone. A path that is not exact on disk (links, `..`)
    is resolved."""
    views = visible_roots(client, roots.views())
    found: list[FilePlace] = []
    if os.path.isabs(path):
        owned = roots.find(paths.absolute(path))
        if owned is not None and owned[0].name in views:
            found.append(owned)
    for view, place in candidate_places(path, views):
        entry = (roots.by_name[view.name], place)
        if entry not in found and not any(part in (b"..", b".") for part in place.split(b"/")):
            found.append(entry)
    return found


def _lines_of(root: RootState, path: bytes, max_bytes: int) -> Sequence[str] | None:
    read = read_file(root.rules, path, max_bytes)
    if isinstance(read, NotRead):
        return None
    decoded = decode.decode(read.data)
    return None if decoded is None else decode.unified_newlines(decoded.text).split("\n")
