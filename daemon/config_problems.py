"""What is wrong with a configuration, in words: the key, what it should be, the nearest valid name, the line.

What must stay true: pure; every problem of a file is found in one pass, and each names its key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ragd.daemon.config_lines import Place
from ragd.daemon.config_schema import NOT_YET, NOT_YET_VALUES, ChunkingKeys, RootTable, RuleTable, Settings

MISSING_PATH = "\0"
"""Stands for the path of a root that has none, while the rest of the file is checked."""

_MEANT: dict[str, str] = {
    "chunk_size": "target_tokens",
    "chunksize": "target_tokens",
    "size": "target_tokens",
    "chunk_overlap": "overlap_ratio",
    "overlap": "overlap_ratio",
    "strategy": "chunker",
    "paths": "path",
    "folder": "path",
    "dir": "path",
    "directory": "path",
    "ignore": "exclude",
    "memory_mb": "parse_memory_mb",
    "timeout": "parse_seconds",
    "debounce": "debounce_ms",
    "delay": "max_delay_ms",
    "token": "token_file",
    "model_name": "model",
    "top_k": "k",
    "interval": "walk",
}
"""What people call a key who know it from elsewhere."""


@dataclass(frozen=True, slots=True)
class Problem:
    place: Place
    message: str


def key_of(place: Place) -> str:
    """Dotted, as in `root[0].rule[1].glob`."""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def schema_problems(error: ValidationError, raw: Mapping[str, Any], table: tuple[str, ...] = ()) -> list[Problem]:
    """The problems of one validation of `raw`, which is the whole file or one `table` of it."""
    places = [(item, (*table, *_place(item, raw))) for item in error.errors()]
    return [Problem(place, _message(item, place)) for item, place in places]


def without(raw: dict[str, Any], place: Place) -> None:
    """Takes a refused value out of `raw`, in place, so that the rest can be checked too."""
    parent: Any = raw
    for part in place[:-1]:
        child = parent[part]
        if isinstance(child, list) and not all(isinstance(item, dict) for item in child):
            del parent[part]
            return
        parent = child
    last = place[-1]
    if last == "path" and "path" not in parent:
        parent["path"] = MISSING_PATH
    elif last == "glob" and "glob" not in parent:
        parent["glob"] = "*"
    else:
        del parent[last]


def _place(item: ErrorDetails, raw: Mapping[str, Any]) -> Place:
    """pydantic's location without what only pydantic knows of."""
    place: list[str | int] = []
    value: Any = raw
    for part in item["loc"]:
        place.append(part)
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            break
    return tuple(place)


def _message(item: ErrorDetails, place: Place) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if kind == "extra_forbidden" or (kind == "model_type" and place[0] == "chunking" and len(place) == 2):
        return unknown_key(place)
    if kind == "literal_error":
        return _wrong_value(place, item["input"], str(context["expected"]))
    if kind in ("missing", "string_too_short"):
        return "is required" if kind == "missing" else "must not be empty"
    if kind == "tuple_type" and isinstance(item["input"], dict):
        return f"is a table that can stand several times: write it as [[{'.'.join(map(str, place))}]]"
    wanted = {
        "int_type": "a whole number",
        "int_from_float": "a whole number",
        "float_type": "a number",
        "finite_number": "a finite number",
        "bool_type": "true or false",
        "string_type": 'text in quotes ("...")',
        "tuple_type": 'a list (["...", "..."])',
        "model_type": "a table of keys",
        "greater_than": f"more than {context.get('gt')}",
        "greater_than_equal": f"at least {context.get('ge')}",
        "less_than_equal": f"at most {context.get('le')}",
    }.get(kind)
    if wanted is None:
        return f"{item['msg']}, not {_shown(item['input'])}"
    hint = ""
    if kind in ("int_type", "float_type", "bool_type") and isinstance(item["input"], str):
        hint = " (without the quotes)"
    return f"must be {wanted}{hint}, not {_shown(item['input'])}"


def _wrong_value(place: Place, value: Any, expected: str) -> str:
    later = NOT_YET_VALUES.get(key_of(place), ())
    if isinstance(value, str) and value.startswith(later or "\0"):
        what = "a Chroma server is" if key_of(place) == "store.chroma" else f'"{value}" is'
        return f"{what} not there yet; use {_quoted(expected)}"
    near = difflib.get_close_matches(str(value), re.findall(r"'([^']+)'", expected), 1)
    return f"must be {_quoted(expected)}, not {_shown(value)}" + (f'; did you mean "{near[0]}"?' if near else "")


def _quoted(expected: str) -> str:
    return expected.replace("'", '"').replace("True", "true").replace("False", "false")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value[:60]}"'
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list | tuple) else f"{value!r:.60}"


def unknown_key(place: Place) -> str:
    """What to say of a key that is not in the schema: not yet, the nearest name, or where it belongs."""
    key, table = str(place[-1]), tuple(part for part in place[:-1] if isinstance(part, str))
    dotted = ".".join(table)
    if key in NOT_YET.get("chunking" if table[:1] == ("chunking",) else dotted, ()):
        return "is not there yet: a later version of ragd will know this key"
    known = _keys_of(table)
    name = _plain(key) if table else _MEANT.get(_plain(key), _plain(key))
    elsewhere = [where for where, keys in _all_keys().items() if name in keys and where != f"[{dotted}]"]
    belongs = f"{name} in {' or '.join(elsewhere)}" if elsewhere else ""
    if not table:
        near = [] if _plain(key) in _MEANT else difflib.get_close_matches(_plain(key), known, 1, 0.6)
        meant = f"[[{near[0]}]]" if near == ["root"] else f"[{near[0]}]" if near else belongs
        return "unknown" + (f"; did you mean {meant}?" if meant else ".") + f" The tables are {', '.join(known)}"
    near = [_MEANT[_plain(key)]] if _MEANT.get(_plain(key)) in known else []
    near = near or difflib.get_close_matches(_plain(key), known, 1, 0.0 if not elsewhere else 0.6)
    meant = " or ".join([*near, *([belongs] if belongs else [])])
    return f"unknown key; did you mean {meant}? Known here: {', '.join(known)}"


def _plain(key: str) -> str:
    return key.strip().lower().replace("-", "_")


def _keys_of(table: tuple[str, ...]) -> list[str]:
    model: type[BaseModel] = Settings
    for part in table:
        if part == "root":
            model = RootTable
        elif part == "rule":
            model = RuleTable
        elif model is Settings:
            model = type(getattr(Settings(), part))
        else:
            model = ChunkingKeys
    return list(model.model_fields)


def _all_keys() -> dict[str, list[str]]:
    tables = {f"[{name}]": _keys_of((name,)) for name in Settings.model_fields if name != "root"}
    return {**tables, "[[root]]": _keys_of(("root",)), "[[root.rule]]": ["glob"]}


def near_value(value: str, known: Iterable[str]) -> str:
    """The end of a message about a value that is not one of `known`."""
    names = sorted(known)
    near = difflib.get_close_matches(value, names, 1, 0.5)
    return (f"; did you mean {near[0]}?" if near else ".") + f" Known: {', '.join(names)}"
