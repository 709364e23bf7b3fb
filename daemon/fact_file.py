"""Small facts kept between starts (hashes of model files by their stat), in one JSON file.

What must stay true: it is a cache. A file that cannot be read is the same as none, and one that cannot be written
costs time at the next start, nothing else.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path

log = logging.getLogger(__name__)


class FactFile(MutableMapping[str, str]):
    """A mapping of strings that is written through to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._facts = _read(path)

    def __getitem__(self, key: str) -> str:
        return self._facts[key]

    def __setitem__(self, key: str, value: str) -> None:
        self._facts[key] = value
        self._write()

    def __delitem__(self, key: str) -> None:
        del self._facts[key]
        self._write()

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def _write(self) -> None:
        beside = self._path.with_suffix(".new")
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(self._facts, file, indent=1)
            os.replace(beside, self._path)
        except OSError as error:
            log.warning("%s cannot be written (%s): the next start takes longer", self._path, error.strerror)


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if isinstance(key, str) and isinstance(value, str)}
