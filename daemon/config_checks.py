"""What the schema alone cannot say of a configuration: folders, names, globs, times, addresses, chunkers.

What must stay true: each check returns its problems and never raises, so that all of them are found at once.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from ragd.daemon.config_problems import MISSING_PATH, Problem, near_value
from ragd.daemon.config_roots import expand, same_folder
from ragd.daemon.config_schema import ChunkingKeys, RootTable, Settings
from ragd.daemon.schedule import check_when

Names = Callable[[], frozenset[str]]
"""Names are fetched only where the file uses one: the chunkers are heavy to load."""


def check_settings(settings: Settings, base: Path, types: Names, chunkers: Names) -> list[Problem]:
    """Every problem of a file that fits the schema. `base` is the folder of the file."""
    problems = [*_check_schedule(settings), *_check_server(settings), *_check_files(settings, base)]
    problems += _check_chunking(settings, types, chunkers)
    problems += _check_names(settings)
    problems += _check_folders(settings, base)
    for index, table in enumerate(settings.root):
        problems += _check_globs(table, index)
    return problems


def _check_schedule(settings: Settings) -> Iterator[Problem]:
    for name in ("walk", "retry"):
        value = getattr(settings.schedule, name)
        if (why := check_when(value)) is not None:
            yield Problem(("schedule", name), f'"{value}" is {why}')


def _check_server(settings: Settings) -> Iterator[Problem]:
    host = settings.server.host
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        yield Problem(("server", "host"), f'must be a loopback address such as "127.0.0.1", not "{host}"')


def _check_files(settings: Settings, base: Path) -> Iterator[Problem]:
    paths = {
        ("store", "path"): settings.store.path,
        ("server", "socket"): settings.server.socket,
        ("server", "token_file"): settings.server.token_file,
    }
    for place, path in paths.items():
        try:
            expand(path, base)
        except ValueError as error:
            yield Problem(place, f'"{path}": {error}')


def _check_chunking(settings: Settings, types: Names, chunkers: Names) -> Iterator[Problem]:
    tables: list[tuple[tuple[str | int, ...], ChunkingKeys]] = [(("chunking",), settings.chunking)]
    for name, keys in settings.chunking.types.items():
        tables.append((("chunking", name), keys))
        if name not in types():
            yield Problem(("chunking", name), f"unknown type{near_value(name, types())}")
    for index, root in enumerate(settings.root):
        tables += [(("root", index, "rule", number), rule) for number, rule in enumerate(root.rule)]
    for place, table in tables:
        if table.chunker not in (None, "auto") and table.chunker not in chunkers():
            yield Problem((*place, "chunker"), f'no chunker "{table.chunker}"{near_value(table.chunker, chunkers())}')
        target, most = table.target_tokens, table.max_tokens
        if target is not None and most is not None and most < target:
            yield Problem((*place, "max_tokens"), f"must be at least target_tokens ({target}), not {most}")


def _check_names(settings: Settings) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, root in enumerate(settings.root):
        if root.name is None:
            continue
        if not root.name.strip() or "/" in root.name or not root.name.isprintable():
            yield Problem(("root", index, "name"), f"must be readable text without a slash, not {root.name!r}")
        elif root.name in first:
            yield Problem(("root", index, "name"), f'"{root.name}" is the name of root[{first[root.name]}] already')
        else:
            first[root.name] = index


def _check_folders(settings: Settings, base: Path) -> Iterator[Problem]:
    seen: list[tuple[int, str]] = []
    for index, root in enumerate(settings.root):
        if root.path == MISSING_PATH:
            continue
        try:
            path = expand(root.path, base)
        except ValueError as error:
            yield Problem(("root", index, "path"), f'"{root.path}": {error}')
            continue
        twin = next((other for other, known in seen if same_folder(path, known)), None)
        if twin is not None:
            yield Problem(("root", index, "path"), f'"{root.path}" is the folder of root[{twin}] already')
        seen.append((index, path))


def check_state(settings: Settings, base: Path, state: Path) -> Iterator[Problem]:
    """Roots that are the state folder or lie in it: ragd would index what it writes, for ever."""
    for index, root in enumerate(settings.root):
        if root.path == MISSING_PATH:
            continue
        try:
            path = expand(root.path, base)
        except ValueError:
            continue  # reported with the folders
        if same_folder(path, str(state)) or Path(os.path.realpath(path)).is_relative_to(os.path.realpath(state)):
            yield Problem(("root", index, "path"), f'"{root.path}" is in the state folder {state} ([store] path)')


def _check_globs(table: RootTable, index: int) -> Iterator[Problem]:
    for key, globs in (("include", table.include), ("exclude", table.exclude)):
        for glob in globs:
            if (why := glob_problem(glob)) is not None:
                yield Problem(("root", index, key), f'"{glob}" {why}')
    for number, rule in enumerate(table.rule):
        if (why := glob_problem(rule.glob)) is not None:
            yield Problem(("root", index, "rule", number, "glob"), f'"{rule.glob}" {why}')


def glob_problem(glob: str) -> str | None:
    """Why a pattern could never match, or None when it could."""
    if not glob.strip() or glob.startswith("#"):
        return "matches nothing"
    if glob.startswith("!"):
        return 'begins with "!": say what matches, not what does not'
    if ".." in glob.split("/"):
        return 'holds "..": it is matched on the path in the root'
    if "\0" in glob:
        return "holds a NUL character"
    from pathspec import GitIgnoreSpec

    try:
        spec = GitIgnoreSpec.from_lines([glob])
    except (ValueError, re.error) as error:
        return f"is no pattern: {error}"
    return None if any(pattern.include is not None for pattern in spec.patterns) else "matches nothing"
