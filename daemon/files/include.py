"""The `include` patterns of a root: which files are wanted, and what they take back from the built-in list.

What must stay true: a wildcard alone never takes back what the built-in list leaves out, and a secret comes
back only when its whole name is written.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from ragd.daemon.files.gitignore import PatternFile, split_lines

_WILD = b"*?[\\"


class Include:
    """Truthy when there are patterns. Without any, everything is wanted."""

    def __init__(self, patterns: Sequence[str]) -> None:
        lines = [line for pattern in patterns for _, line in split_lines(os.fsencode(pattern))]
        self.text = " ".join(line.decode("utf-8", "backslashreplace") for line in lines)
        self._patterns = PatternFile(list(enumerate(lines, 1)), b"configuration") if lines else None
        wanted = [line for line in lines if not line.startswith(b"!")]
        parts = [part for line in wanted for part in line.strip(b"/").split(b"/")]
        self._named_folders = frozenset(part.lower() for part in parts if _literal(part))
        self._ends = [
            (line.strip(b"/").rpartition(b"/")[2], PatternFile([(1, line)], b"configuration")) for line in wanted
        ]
        self._places = _places(wanted)

    def __bool__(self) -> bool:
        return self._patterns is not None

    def matches(self, name: bytes, prefix: bytes, inherited: bool, *, is_folder: bool) -> bool:
        """Whether an entry is wanted; `inherited` is the answer for its folder, `prefix` the folder's path +
        "/"."""
        found = self._patterns.match(name, prefix, is_folder=is_folder) if self._patterns else None
        return inherited if found is None else not found.negated

    def may_hold(self, folder: bytes) -> bool:
        """Whether something wanted can lie in a folder. Patterns without a slash inside reach everywhere."""
        if self._places is None:
            return True
        parts = folder.split(b"/")
        return any(
            all(_literal_equal(part, place) for part, place in zip(parts, places, strict=False))
            for places in self._places
        )

    def names_folder(self, name: bytes) -> bool:
        return name.lower() in self._named_folders

    def takes_back(self, name: bytes, prefix: bytes, code: str, *, is_folder: bool) -> bool:
        """Whether a pattern names what the built-in list leaves out."""
        if self._patterns is None:
            return False
        if is_folder:
            return self.names_folder(name)
        extension = name.rpartition(b".")[2].lower()
        for end, pattern in self._ends:
            exact = _literal(end) and end == name
            by_extension = code != "secret_name" and end.lower().endswith(b"." + extension) and b"." in name
            if (exact or by_extension) and pattern.match(name, prefix, is_folder=False):
                return True
        return False


def _literal(part: bytes) -> bool:
    return bool(part) and not any(byte in _WILD for byte in part)


def _literal_equal(part: bytes, place: bytes | None) -> bool:
    return place is None or part == place


def _places(lines: Sequence[bytes]) -> list[list[bytes | None]] | None:
    """For each pattern the folders it can lie in, part by part (None: any name), up to a `**`; None when some
    pattern reaches everywhere."""
    places: list[list[bytes | None]] = []
    for line in lines:
        body = line.rstrip(b"/")
        if b"/" not in body:
            return None
        parts: list[bytes | None] = []
        for part in body.removeprefix(b"/").split(b"/"):
            if part == b"**":
                break
            parts.append(part if _literal(part) else None)
        places.append(parts)
    return places
