"""Front matter in YAML or TOML: title, tags and other metadata. The only door to PyYAML.

What must stay true: no front matter raises, costs more than its size allows, or puts anything but JSON into the
metadata.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass, field

import yaml

from ragd.chunkers.records import Json

_MOST_CHARS = 100_000
_MOST_NODES = 5_000
_MOST_DEPTH = 20
_LARGEST_INT = 2**63 - 1
"""What every JSON reader, SQLite and the wire between processes keep exactly."""
_KEY_LINE = re.compile(r"(?:\s*#.*)?\s*[\w\"'][\w .\"'-]*:(?:\s|\Z)")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class FrontMatter:
    """What was read; bad YAML leaves the metadata empty and a warning."""

    metadata: dict[str, Json] = field(default_factory=dict)
    title: str | None = None
    warnings: list[str] = field(default_factory=list)


def read_front_matter(content: str) -> FrontMatter | None:
    """Metadata of the text between the markers; None if that text is prose between two thematic breaks."""
    if not content.strip():
        return FrontMatter()
    looks_like_keys = any(_KEY_LINE.match(line) for line in content.split("\n") if line.strip())
    if len(content) > _MOST_CHARS:
        return FrontMatter(warnings=["front matter is too large to be read"]) if looks_like_keys else None
    try:
        # the loader builds plain values only, and shares what aliases name instead of copying it
        loaded = yaml.load(content, Loader=_LOADER)
    except (yaml.YAMLError, ValueError, OverflowError, TypeError, RecursionError) as problem:
        reason = " ".join(str(problem).split())[:200]
        return FrontMatter(warnings=[f"front matter is not YAML: {reason}"]) if looks_like_keys else None
    if loaded is None:
        return FrontMatter()
    return _kept(loaded) if isinstance(loaded, dict) else None


def read_toml_front_matter(content: str) -> FrontMatter | None:
    """Metadata of the text between two lines of +++, as some site generators have it; None if it is not TOML."""
    if len(content) > _MOST_CHARS:
        return None
    try:
        return _kept(tomllib.loads(content))
    except (tomllib.TOMLDecodeError, ValueError, RecursionError):
        return None


def _kept(loaded: dict[object, object] | dict[str, object]) -> FrontMatter:
    """What was read, as JSON."""
    try:
        metadata = _JsonMaker().convert(loaded, 0)
    except _TooLargeError:
        return FrontMatter(warnings=["front matter is too deep or too large to be kept"])
    assert isinstance(metadata, dict)  # a mapping stays one
    if "tags" in metadata:
        metadata["tags"] = _tags(metadata["tags"])
    title = metadata.get("title")
    named = " ".join(_as_written(title).split()) if isinstance(title, str | int | float) else ""
    return FrontMatter(metadata, named or None)


class _TooLargeError(Exception):
    """More nodes than any real front matter has: aliases can name billions."""


class _JsonMaker:
    """Turns loaded YAML into JSON values, counting nodes."""

    def __init__(self) -> None:
        self._nodes = 0

    def convert(self, value: object, depth: int) -> Json:
        self._nodes += 1
        if self._nodes > _MOST_NODES or depth > _MOST_DEPTH:
            raise _TooLargeError
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return value if -_LARGEST_INT <= value <= _LARGEST_INT else hex(value)
        if isinstance(value, str):
            return _clean(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if isinstance(value, dict):
            return {self._key(key): self.convert(item, depth + 1) for key, item in value.items()}
        if isinstance(value, set):  # its order is another in every process
            return sorted((self.convert(item, depth + 1) for item in value), key=repr)
        if isinstance(value, list | tuple):
            return [self.convert(item, depth + 1) for item in value]
        if isinstance(value, bytes):
            return value.hex()
        return value.isoformat() if hasattr(value, "isoformat") else str(value)

    def _key(self, key: object) -> str:
        plain = self.convert(key, 0) if key is None or isinstance(key, bool | int | str) else str(key)
        return _as_written(plain) if isinstance(plain, str | int | float) else "null"


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\x00", " ")


def _as_written(value: str | float) -> str:
    """A scalar as YAML and TOML write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _tags(value: Json) -> Json:
    """Tags as a list of strings, whether written as a list or with commas."""
    if isinstance(value, str):
        return [tag.strip() for tag in value.split(",") if tag.strip()]
    items = value if isinstance(value, list) else [value]
    words = [_as_written(item).strip() for item in items if isinstance(item, str | int | float)]
    return [word for word in words if word]
