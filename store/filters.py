"""The conditions of a search as SQL on the catalog.

What must stay true: a filter is applied by the catalog, before anything is ranked or cut to k; values are
only ever bound, never pasted; () matches nothing and None is no condition. Roots a client may not see are
never in the condition's reach.

The SQL speaks of `chunk` and `file`, joined.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ragd.store.errors import FilterError
from ragd.store.rows import path_text
from ragd.store.snapshot import Snapshot
from ragd.store.sqlite import Value
from ragd.store.types import Filters, RootView

_LIST = "(SELECT value FROM json_each(?))"
_SHOWN_BYTE = re.compile(r"\\x([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class Condition:
    """A boolean SQL expression with its bindings, in order."""

    sql: str
    bindings: tuple[Value, ...]
    is_selective: bool
    """False when every live chunk meets it."""


def path_matches(glob: str, path: bytes) -> bool:
    """True when the path in the root, as shown, matches the glob.

    Globs read as in .gitignore: without a slash they match a name at any depth, with one they are anchored at
    the root, `**` crosses folders, and what matches a folder matches all that is in it. Case counts.
    """
    return _glob_regex(glob).match(path_text(path)) is not None


def check_globs(globs: Collection[str]) -> None:
    """Raises FilterError when one of the globs is not usable."""
    for glob in globs:
        _glob_regex(glob)


def compile_filters(snapshot: Snapshot, filters: Filters, roots: Mapping[str, RootView]) -> Condition:
    """The condition a hit in the live generation must meet; `roots` are those the client may see.

    Raises FilterError.
    """
    live = -1 if snapshot.live is None else snapshot.live.id
    names = _root_names(filters, roots)
    parts = ["chunk.generation = ?", f"file.root IN {_LIST}"]
    bindings: list[Value] = [live, _json(sorted(names))]

    def among(expression: str, values: Collection[str | int] | None) -> None:
        if values is not None:
            parts.append(f"{expression} IN {_LIST}")
            bindings.append(_json(values))

    among("file.type", filters.type)
    among("chunk.kind", filters.kind)
    among("coalesce(chunk.language, file.language)", filters.language)
    if filters.tag is not None:
        parts.append(f"EXISTS (SELECT 1 FROM json_each(file.tags) AS tag WHERE tag.value IN {_LIST})")
        bindings.append(_json(filters.tag))
    if filters.page is not None:
        parts.append("chunk.page = ?")
        bindings.append(filters.page)
    if filters.since_ns is not None:
        parts.append("file.mtime_ns >= ?")
        bindings.append(filters.since_ns)
    if filters.path is not None:
        among("file.id", _files_matching(snapshot, live, names, filters.path))
    return Condition(" AND ".join(parts), tuple(bindings), len(parts) > 2 or not _holds_all(snapshot, live, names))


def _holds_all(snapshot: Snapshot, generation: int, names: Collection[str]) -> bool:
    """True when no chunk of the generation lies outside the named roots."""
    rows = snapshot.execute(
        "SELECT root FROM tally WHERE generation = ? GROUP BY root HAVING sum(chunks) > 0", (generation,)
    )
    return all(root in names for (root,) in rows)


def _files_matching(snapshot: Snapshot, generation: int, names: Collection[str], globs: Sequence[str]) -> list[int]:
    """The ids of the files whose path matches one of the globs."""
    found: set[int] = set()
    for glob in globs:
        regex = _glob_regex(glob)
        sql = f"SELECT id, path FROM file WHERE generation = ? AND root IN {_LIST}"
        bindings: list[Value] = [generation, _json(sorted(names))]
        if prefix := literal_prefix(glob):
            sql += " AND path >= ? AND path < ?"
            bindings += [prefix, prefix[:-1] + bytes([prefix[-1] + 1])]
        found.update(
            file_id for file_id, path in snapshot.execute(sql, bindings) if regex.match(path_text(path)) is not None
        )
    return sorted(found)


def literal_prefix(glob: str) -> bytes:
    """What the raw path of every match begins with; b"" when nothing is certain."""
    anchored = glob.removeprefix("./")
    if "/" not in anchored.rstrip("/"):
        return b""
    literal = re.split(r"[*?\[\\]", anchored.removeprefix("/"), maxsplit=1)[0]
    return literal.rstrip("/ ").encode("utf-8", "replace") if literal.isascii() else b""


def _root_names(filters: Filters, roots: Mapping[str, RootView]) -> set[str]:
    """The names of the roots that meet the filters on roots and labels."""
    names = set(roots)
    if filters.root is not None:
        names &= set(filters.root)
    if filters.label is not None:
        wanted = set(filters.label)
        names = {name for name in names if roots[name].labels & wanted}
    return names


def _json(values: Collection[str | int]) -> str:
    return json.dumps(list(values))


@functools.lru_cache(maxsize=256)
def _glob_regex(glob: str) -> re.Pattern[str]:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # only for a query that names a path

    pattern = glob.removeprefix("./")
    # A byte shown as \xHH stands for itself, and neither "!" nor "#" means anything here.
    pattern = _SHOWN_BYTE.sub(r"\\\\x\1", pattern)
    if pattern.startswith(("!", "#")):
        pattern = "\\" + pattern
    if pattern.endswith(" "):
        pattern = pattern.rstrip(" ") + "\\ " * (len(pattern) - len(pattern.rstrip(" ")))
    try:
        source, includes = GitIgnoreSpecPattern.pattern_to_regex(pattern)
        if source is None or not includes:
            raise FilterError("path", f"{glob!r} is not a usable glob")
        return re.compile(source, re.DOTALL)
    except (ValueError, re.error) as error:
        if isinstance(error, FilterError):
            raise
        raise FilterError("path", f"{glob!r} is not a usable glob: {error}") from error
