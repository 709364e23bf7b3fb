"""The configuration: finding the file, reading it (the only door to tomli), and what is in force after it.

What must stay true: a file is taken whole or not at all; every problem in it is reported at once; what the
file does not say has the default of the schema.
"""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import ValidationError

from ragd.chunkers.records import CutSettings
from ragd.daemon.config_checks import check_settings, check_state
from ragd.daemon.config_lines import lines_of
from ragd.daemon.config_problems import Problem, key_of, schema_problems, without
from ragd.daemon.config_roots import Root, cut_settings, expand, make_roots
from ragd.daemon.config_schema import (
    ChunkingSection,
    EmbeddingSection,
    LimitsSection,
    ScheduleSection,
    SearchSection,
    ServerSection,
    Settings,
    StoreSection,
    WatchSection,
)
from ragd.daemon.errors import UsageError

APPLICATION = "ragd"


@dataclass(frozen=True, slots=True)
class Config:
    """A whole configuration, checked, every path absolute. `file` is None when there is no file: the
    defaults."""

    file: Path | None
    settings: Settings
    state_dir: Path
    socket_path: Path
    token_file: Path
    roots: tuple[Root, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    @property
    def store(self) -> StoreSection:
        return self.settings.store

    @property
    def embedding(self) -> EmbeddingSection:
        return self.settings.embedding

    @property
    def chunking(self) -> ChunkingSection:
        return self.settings.chunking

    @property
    def watch(self) -> WatchSection:
        return self.settings.watch

    @property
    def schedule(self) -> ScheduleSection:
        return self.settings.schedule

    @property
    def server(self) -> ServerSection:
        return self.settings.server

    @property
    def limits(self) -> LimitsSection:
        return self.settings.limits

    @property
    def search(self) -> SearchSection:
        return self.settings.search

    @property
    def cpu_threads(self) -> int:
        """[limits] cpu_threads, 0 resolved: the cores this process may use."""
        return self.limits.cpu_threads or _cores()

    @property
    def model_threads(self) -> int:
        """[embedding] threads, 0 resolved."""
        return self.embedding.threads or self.cpu_threads

    def cut_settings(self, root: Root | None, rel_path: str | bytes, type_name: str | None = None) -> CutSettings:
        """How a file of a root is cut; see config_roots.cut_settings for which key wins. Without `type_name`
        the type is the one its name tells, which is what counts before a file is read."""
        return cut_settings(self.chunking, root, rel_path, type_name or _type_of_name(rel_path))


def _type_of_name(rel_path: str | bytes) -> str:
    from ragd.chunkers.detect import type_by_name

    return type_by_name(os.fsdecode(rel_path).rpartition("/")[2]) or "text"


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def find_config(explicit: str | None, environment: Mapping[str, str]) -> Path | None:
    """The file that counts: `explicit`, else $RAGD_CONFIG, else the one in the user's configuration folder
    if it is there. Raises UsageError when a file was named that is not there."""
    for named, source in ((explicit, "--config"), (environment.get("RAGD_CONFIG") or None, "$RAGD_CONFIG")):
        if named is not None:
            path = Path(os.path.abspath(Path(named).expanduser()))
            if not path.is_file():
                raise UsageError(f"{source}: there is no configuration file {path}. `ragd init` writes one.")
            return path
    path = default_config_file()
    return path if path.is_file() else None


def config_to_write(explicit: str | None, environment: Mapping[str, str]) -> Path:
    """The file that `find_config` would look for, whether it is there or not."""
    named = explicit or environment.get("RAGD_CONFIG")
    return Path(os.path.abspath(Path(named).expanduser())) if named else default_config_file()


def default_config_file() -> Path:
    """Where the configuration is looked for when nothing names it."""
    return platformdirs.user_config_path(APPLICATION) / "config.toml"


def load_config(file: Path | None) -> Config:
    """Reads and checks a file; None gives the defaults. Raises UsageError that holds every problem."""
    if file is None:
        return parse_config("", None)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _refused(file, [f"{file}:{line}: not UTF-8 text"]) from error
    return parse_config(text, file)


def parse_config(text: str, file: Path | None) -> Config:
    """Checks the text of a configuration; relative paths count from the folder of `file`."""
    import tomli

    try:
        raw = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        where = f"{file}:{error.lineno}:{error.colno}"
        raise _refused(file, [f"{where}: not valid TOML: {error.msg}"]) from error
    base = file.parent if file is not None else Path.cwd()
    settings, problems = _validate(raw)
    problems += check_settings(settings, base, _known_types, _known_chunkers)
    with contextlib.suppress(ValueError):  # a state folder that cannot be expanded is one of the problems
        problems += check_state(settings, base, _state_dir(settings, base))
    if problems:
        raise _refused(file, _written(problems, text, file, raw))
    roots = make_roots([(table, expand(table.path, base)) for table in settings.root])
    state_dir = _state_dir(settings, base)
    return Config(
        file=file,
        settings=settings,
        state_dir=state_dir,
        socket_path=state_dir / "ragd.sock"
        if not settings.server.socket
        else Path(expand(settings.server.socket, base)),
        token_file=state_dir / "token"
        if not settings.server.token_file
        else Path(expand(settings.server.token_file, base)),
        roots=roots,
        warnings=_warnings(roots),
    )


def toml_or_text(value: str) -> Any:
    """What TOML takes a single value for (a number, true, "text"); the text itself where it takes it for
    nothing."""
    import tomli

    try:
        parsed = tomli.loads(f"value = {value}")
    except tomli.TOMLDecodeError:
        return value
    return parsed["value"] if len(parsed) == 1 else value


def _state_dir(settings: Settings, base: Path) -> Path:
    if settings.store.path:
        return Path(expand(settings.store.path, base))
    return platformdirs.user_data_path(APPLICATION)


def _validate(raw: dict[str, Any]) -> tuple[Settings, list[Problem]]:
    """Settings without what was refused, and what was refused. Each round takes out what is wrong, so it
    ends."""
    rest, problems = copy.deepcopy(raw), list[Problem]()
    while True:
        try:
            return Settings.model_validate(rest), problems
        except ValidationError as error:
            found = schema_problems(error, rest)
            for problem in found:
                without(rest, problem.place)
            known = {problem.place for problem in problems}
            problems += [problem for problem in found if problem.place not in known]


def _written(problems: list[Problem], text: str, file: Path | None, raw: dict[str, Any]) -> list[str]:
    """Each problem as a line: file, line, key, what is wrong; in the order of the file."""
    lines = lines_of(text)
    placed = []
    for problem in problems:
        place = problem.place
        while place and place not in lines:
            place = place[:-1]
        number = lines.get(place)
        where = f"{file}:{number}" if number is not None else str(file)
        placed.append((number or 0, f"{where}: {key_of(problem.place)}{_root_named(problem, raw)}: {problem.message}"))
    return [line for _, line in sorted(dict.fromkeys(placed), key=lambda item: item[0])]


def _root_named(problem: Problem, raw: dict[str, Any]) -> str:
    if problem.place[0] != "root" or len(problem.place) < 2:
        return ""
    table = raw["root"][problem.place[1]]
    name = table.get("name", table.get("path")) if isinstance(table, dict) else None
    return f' ("{name}")' if isinstance(name, str) else ""


def _refused(file: Path | None, problems: list[str]) -> UsageError:
    count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
    return UsageError(f"The configuration {file} has {count}.", problems=problems)


def _warnings(roots: tuple[Root, ...]) -> tuple[str, ...]:
    if not roots:
        return ("There is no [[root]]: nothing is indexed.",)
    return tuple(
        f'The root "{root.name}" is unavailable: there is no folder {root.path}'
        for root in roots
        if not root.available()
    )


def _known_types() -> frozenset[str]:
    from ragd.chunkers.registry import TYPES

    return frozenset(TYPES)


def _known_chunkers() -> frozenset[str]:
    from ragd.chunkers.registry import chunker_names

    return frozenset(chunker_names())
