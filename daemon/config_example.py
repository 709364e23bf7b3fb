"""The commented configuration that `ragd init` writes and `ragd config example` prints, made from the schema.

What must stay true: every key of the schema is in it, with its description and its default; as it stands it
sets nothing but the roots.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from ragd.daemon.config_schema import CHUNKING_DEFAULTS, RootTable, RuleTable, Settings

_WIDTH = 100

_SHOWN: dict[str, Any] = {
    "query_prompt": "query: ",
    "document_prompt": "passage: ",
    "name": "notes",
    "glob": "meetings/**",
    **CHUNKING_DEFAULTS,
}
"""What is shown for a key that has no default of its own in the schema."""

_HEAD = (
    "ragd's configuration: which folders are indexed, and how. Every key stands here with its default, "
    'switched off by the "# " in front of it; the folders are at the end. `ragd config check` says '
    "whether all is well."
)


def toml_value(value: Any) -> str:
    """A value as TOML writes it. Raises ValueError for text that TOML cannot hold (a path that is not
    UTF-8)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{value!r} cannot be written in a TOML file: it is not UTF-8") from error
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return str(value)


def example_toml(roots: Sequence[str] = ("~/notes",)) -> str:
    """The whole file, with these folders as roots."""
    lines = _comment(_HEAD)
    for name, field in Settings.model_fields.items():
        if name == "root":
            continue
        section = type(field.default)
        lines += ["", *_comment(section.__doc__ or ""), f"[{name}]"]
        for key, default in section().model_dump().items():
            lines += _key(section, key, default)
        if name == "chunking":
            lines += ["", "# [chunking.csv]", "# overlap_ratio = 0.0"]
    lines += [
        "",
        *_comment(f"{RootTable.__doc__} One [[root]] for each; of nested ones the innermost owns a file."),
    ]
    for number, root in enumerate(roots):
        lines += ["", "[[root]]", f"path = {toml_value(root)}"] if number else ["[[root]]", *_root_lines(root)]
    return "\n".join(lines) + "\n"


def _root_lines(root: str) -> list[str]:
    """The first root, with what else a root can say."""
    lines = [*_comment(RootTable.model_fields["path"].description or ""), f"path = {toml_value(root)}"]
    for key, field in RootTable.model_fields.items():
        if key not in ("path", "rule"):
            lines += _key(RootTable, key, field.default)
    lines += ["", *_comment(RuleTable.__doc__ or ""), "# [[root.rule]]"]
    for key in ("glob", "target_tokens"):
        lines += _key(RuleTable, key, None)
    return lines


def _key(section: type[BaseModel], key: str, default: Any) -> list[str]:
    shown = _SHOWN[key] if default is None else default
    return [*_comment(section.model_fields[key].description or ""), f"# {key} = {toml_value(shown)}"]


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(" ".join(text.split()), _WIDTH - 2, break_on_hyphens=False)]


def effective(settings: Settings) -> Mapping[str, Any]:
    """What is in force, key by key, the defaults of [chunking] included."""
    values: dict[str, Any] = settings.model_dump(exclude_none=True, mode="json")
    values["chunking"] = {**CHUNKING_DEFAULTS, **values["chunking"]}
    return values


def effective_toml(values: Mapping[str, Any]) -> str:
    """What `effective` gives, as TOML that says the same when it is read."""
    lines: list[str] = []
    for name, section in values.items():
        for table in section if isinstance(section, list) else [section]:
            lines += ["", f"[[{name}]]" if isinstance(section, list) else f"[{name}]", *_table(name, table)]
    return "\n".join(lines[1:]) + "\n"


def _table(name: str, table: Mapping[str, Any]) -> list[str]:
    lines, inner = [], list[str]()
    for key, value in table.items():
        if isinstance(value, Mapping):
            inner += ["", f"[{name}.{key}]", *_table(f"{name}.{key}", value)]
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for item in value:
                inner += ["", f"[[{name}.{key}]]", *_table(f"{name}.{key}", item)]
        else:
            lines.append(f"{key} = {toml_value(value)}")
    return lines + inner
