"""What may be asked, read strictly: mappings of long option names become typed requests.

What must stay true: every way in (command line, HTTP, MCP) reads its parameters here, so the same parameters
mean the same everywhere; an unknown key or an unusable value is a FilterError that names the field, never an
ignored wish.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ragd.store.errors import FilterError
from ragd.store.filters import check_globs
from ragd.store.places import shown_text
from ragd.store.types import Filters, SearchRequest

MAX_QUERY_CHARACTERS = 20_000
MAX_K = 1_000
MAX_VALUES = 1_000

_LAST_NS = 2**63 - 1
"""The last nanosecond that the catalog's times reach (in the year 2262)."""
_DURATION = re.compile(r"(\d{1,6})\s*([smhdw])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LINES = re.compile(r"(?s)(?P<path>.+?):(?P<start>\d{1,9})(?:-(?P<end>\d{1,9}))?")


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read what `get` was asked for: a path and lines (1-based, inclusive); None is the whole
    file."""

    path: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class GetRequest:
    """A chunk by its id, or a path. `readings` are tried in order: a file may really be called `a.md:3-5`."""

    id: str | None = None
    parent: bool = False
    neighbours: int = 0
    readings: tuple[Reading, ...] = ()


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """A file to be cut without indexing it; `settings` are `[chunking]` keys."""

    path: str
    chunker: str | None = None
    settings: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """A path to forget, or the root (name or path) whose held deletions are confirmed."""

    path: str | None = None
    confirm: str | None = None


def parse_search(params: Mapping[str, Any], now: datetime) -> SearchRequest:
    """`now` carries the zone that dates without one are read in. Raises FilterError."""
    asked = _read(_Search, params)
    return SearchRequest(
        query=asked.query,
        k=asked.k,
        mode=asked.mode,
        expand=asked.expand,
        filters=_filters(asked, now),
    )


def parse_get(params: Mapping[str, Any]) -> GetRequest:
    """Raises FilterError."""
    asked = _read(_Get, params)
    if (asked.id is None) == (asked.path is None):
        _refuse("path", "give either a path or the id of a chunk")
    if asked.id is not None:
        if asked.start is not None or asked.end is not None:
            _refuse("start", "lines go with a path, not with the id of a chunk")
        if asked.parent and asked.neighbours:
            _refuse("neighbours", "give either parent or neighbours")
        return GetRequest(id=asked.id, parent=asked.parent, neighbours=asked.neighbours)
    if asked.parent or asked.neighbours:
        _refuse("parent" if asked.parent else "neighbours", "goes with the id of a chunk, not with a path")
    path = asked.path or ""
    if asked.start is not None or asked.end is not None:
        return GetRequest(readings=(_reading(path, asked.start, asked.end),))
    split = _LINES.fullmatch(path)
    if split is None:
        return GetRequest(readings=(Reading(path),))
    start = int(split["start"])
    end = int(split["end"]) if split["end"] else start
    literal = Reading(path)
    if start < 1 or end < start:
        return GetRequest(readings=(literal,))
    return GetRequest(readings=(literal, Reading(split["path"], start, end)))


def parse_preview(params: Mapping[str, Any]) -> PreviewRequest:
    """Raises FilterError."""
    asked = _read(_Preview, params)
    return PreviewRequest(path=asked.path, chunker=asked.chunker, settings=dict(asked.set))


def parse_forget(params: Mapping[str, Any]) -> ForgetRequest:
    """Raises FilterError."""
    asked = _read(_Forget, params)
    if (asked.path is None) == (asked.confirm is None):
        _refuse("path", "give either a path or the root to confirm")
    return ForgetRequest(path=asked.path, confirm=asked.confirm)


def parse_sync(params: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths to bring in; none means every root. Raises FilterError."""
    return _read(_Sync, params).paths


def parse_why(params: Mapping[str, Any]) -> str:
    """Raises FilterError."""
    return _read(_Why, params).path


def parse_since(text: str, now: datetime) -> int:
    """Nanoseconds since the epoch of an RFC 3339 time, a date (its midnight in the zone of `now`) or an age
    such as `7d` (units s, m, h, d, w). Raises FilterError."""
    wanted = text.strip()
    age = _DURATION.fullmatch(wanted)
    try:
        if age is not None:
            moment = now - timedelta(seconds=int(age[1]) * _UNIT_SECONDS[age[2]])
        else:
            moment = datetime.fromisoformat(wanted)
            if moment.tzinfo is None:
                # `now` may carry a fixed offset; the local rules of that day are not known here.
                moment = moment.replace(tzinfo=now.tzinfo)
        moment_ns = int(moment.timestamp() * 1_000_000) * 1_000
    except (ValueError, OverflowError):
        _refuse("since", f"{text!r} is neither a date, nor an RFC 3339 time, nor an age such as 7d")
    return max(-_LAST_NS, min(_LAST_NS, moment_ns))


# --- the shapes ------------------------------------------------------------


def _carried(value: object) -> object:
    """The value with every text such that UTF-8 can carry it."""
    if isinstance(value, str):
        return shown_text(value)
    if isinstance(value, list | tuple):
        return [_carried(item) for item in value]
    return value


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _whole(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError("a whole number is needed")
    return value


_Text = Annotated[str, Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
_Values = Annotated[
    tuple[Annotated[str, Field(max_length=4_096)], ...],
    Field(max_length=MAX_VALUES),
    BeforeValidator(_as_list),
]
_Line = Annotated[int, Field(ge=1, le=10**9), BeforeValidator(_whole)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Search(_Shape):
    query: Annotated[str, Field(max_length=MAX_QUERY_CHARACTERS)]
    k: Annotated[int, Field(ge=1, le=MAX_K), BeforeValidator(_whole)] = 5
    mode: Literal["hybrid", "dense", "lexical"] = "hybrid"
    expand: Literal["none", "neighbours", "parent"] = "none"
    root: _Values | None = None
    path: _Values | None = None
    type: _Values | None = None
    kind: _Values | None = None
    language: _Values | None = None
    label: _Values | None = None
    tag: _Values | None = None
    page: _Line | None = None
    since: str | None = None


class _Get(_Shape):
    id: _Text | None = None
    path: _Text | None = None
    start: _Line | None = None
    end: _Line | None = None
    parent: bool = False
    neighbours: Annotated[int, Field(ge=0, le=1_000), BeforeValidator(_whole)] = 0


class _Preview(_Shape):
    path: _Text
    chunker: _Text | None = None
    set: dict[str, Any] = Field(default_factory=dict)


class _Forget(_Shape):
    path: _Text | None = None
    confirm: _Text | None = None


class _Sync(_Shape):
    paths: Annotated[tuple[_Text, ...], Field(max_length=MAX_VALUES), BeforeValidator(_as_list)] = ()


class _Why(_Shape):
    path: _Text


_S = TypeVar("_S", bound=_Shape)


def _read(shape: type[_S], params: Mapping[str, Any]) -> _S:
    known = ", ".join(shape.model_fields)
    for key in params:
        if key not in shape.model_fields:
            _refuse(str(key), f"unknown parameter {str(key)!r}; known: {known}")
    try:
        return shape.model_validate({key: _carried(value) for key, value in params.items() if value is not None})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        location = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise FilterError(str(first["loc"][0]), f"{location}: {message}") from error


def _filters(asked: _Search, now: datetime) -> Filters:
    if asked.path is not None:
        check_globs(asked.path)
    return Filters(
        root=asked.root,
        path=asked.path,
        type=asked.type,
        kind=asked.kind,
        language=asked.language,
        label=asked.label,
        tag=asked.tag,
        page=asked.page,
        since_ns=None if asked.since is None else parse_since(asked.since, now),
    )


def _reading(path: str, start: int | None, end: int | None) -> Reading:
    first = 1 if start is None else start
    if end is not None and end < first:
        _refuse("end", f"the last line ({end}) is before the first ({first})")
    return Reading(path, first, end)


def _refuse(field: str, message: str) -> NoReturn:
    raise FilterError(field, message)
