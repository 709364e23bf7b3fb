"""The roots of a configuration: their folders, their names, their rules, and how each of their files is cut.

What must stay true: no folder is a root twice (whatever it is called), no two roots share a name, and a
folder that is not there is a root all the same: it is only unavailable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ragd.chunkers.records import CutSettings
from ragd.daemon.config_schema import CHUNKING_DEFAULTS, ChunkingKeys, ChunkingSection, RootTable, RuleTable

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


@dataclass(frozen=True, slots=True)
class Root:
    """A configured folder. `path` is absolute, as the person wrote it; `real_path` has no symbolic links."""

    name: str
    path: str
    real_path: str
    labels: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    follow_symlinks: bool = False
    gitignore: bool = True
    rules: tuple[RuleTable, ...] = field(default=())

    def available(self) -> bool:
        """Whether its folder is there now."""
        return os.path.isdir(self.path)


def expand(path: str, base: Path) -> str:
    """The absolute path that is meant: ~ and $VARIABLES expanded, a relative one from `base` (the folder of
    the configuration file). Raises ValueError when a variable or a user is not known."""
    expanded = os.path.expandvars(path)
    if unset := re.search(r"\$(\w+|\{[^}]*\})", expanded):
        raise ValueError(f"{unset[0]} is not set in the environment")
    if "\0" in expanded:
        raise ValueError("a path cannot hold a NUL character")
    try:
        joined = base / Path(expanded).expanduser()
    except RuntimeError as error:
        raise ValueError(f"there is no home of user {Path(expanded).parts[0][1:]}") from error
    return os.path.realpath(joined) if ".." in joined.parts else os.path.abspath(joined)


def make_roots(tables: Sequence[tuple[RootTable, str]]) -> tuple[Root, ...]:
    """Roots of tables and their expanded paths, each with a name of its own: a default name that is taken
    gets a number."""
    taken = {table.name for table, _ in tables if table.name is not None}
    roots = []
    for table, path in tables:
        name = table.name
        if name is None:
            name = _free_name(os.path.basename(path) or "root", taken)
            taken.add(name)
        roots.append(
            Root(
                name=name,
                path=path,
                real_path=os.path.realpath(path),
                labels=table.labels,
                include=table.include,
                exclude=table.exclude,
                follow_symlinks=table.follow_symlinks,
                gitignore=table.gitignore,
                rules=table.rule,
            )
        )
    return tuple(roots)


def _free_name(wanted: str, taken: Iterable[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name


def same_folder(one: str, other: str) -> bool:
    """Whether two paths are one folder: after symbolic links, and where the file system says so (a bind
    mount, a name in other letters on a disk that does not tell them apart)."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def merge_chunking(layers: Iterable[ChunkingKeys]) -> CutSettings:
    """The keys in force, a later layer over an earlier one. Where a layer sets only one of target_tokens and
    max_tokens, the other one follows it, so that the target never lies above the maximum."""
    values = dict(CHUNKING_DEFAULTS)
    for layer in layers:
        keys = {key: value for key in CHUNKING_DEFAULTS if (value := getattr(layer, key)) is not None}
        values.update(keys)
        if values["target_tokens"] > values["max_tokens"]:
            follower, leader = (
                ("target_tokens", "max_tokens") if "max_tokens" in keys else ("max_tokens", "target_tokens")
            )
            values[follower] = values[leader]
    return CutSettings(**values)


def rules_for(root: Root, rel_path: str) -> list[RuleTable]:
    """The rules of a root that match a file, in their order; `rel_path` is separated by "/"."""
    return [rule for rule in root.rules if _pattern(rule.glob).match_file(rel_path)]


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([glob])


def cut_settings(chunking: ChunkingSection, root: Root | None, rel_path: str | bytes, type_name: str) -> CutSettings:
    """How a file of a root is cut: [chunking], over it [chunking.TYPE], over that each [[root.rule]] that
    matches, in their order in the file."""
    layers: list[ChunkingKeys] = [chunking]
    if type_name in chunking.types:
        layers.append(chunking.types[type_name])
    if root is not None:
        layers += rules_for(root, os.fsdecode(rel_path))
    return merge_chunking(layers)
