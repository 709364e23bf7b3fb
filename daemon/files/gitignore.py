"""Ignore files in the syntax of gitignore(5), matched as git itself matches them.

What must stay true: for any pattern file and any path the answer is that of `git check-ignore --no-index`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ragd.daemon.files.wildmatch import is_literal, translate

MAX_FILE_BYTES = 10 << 20
"""A larger ignore file is not read (git stops at 100 MiB)."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line. `text` is as written, for people; `line` counts from 1."""

    text: bytes
    line: int
    negated: bool
    folder_only: bool
    by_name: bool
    """No slash inside: matched against the last component, at any depth below."""
    regex: re.Pattern[bytes]


class PatternFile:
    """The patterns of one ignore file; the last one that matches decides."""

    __slots__ = ("_names", "_names_regex", "_paths_regex", "_suffixes", "patterns", "source")

    def __init__(self, lines: Sequence[tuple[int, bytes]], source: bytes, *, ignore_case: bool = False) -> None:
        flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
        self.source = source
        patterns: list[Pattern] = []
        names: set[bytes] = set()
        suffixes: list[bytes] = []
        name_sources: list[bytes] = []
        path_sources: list[bytes] = []
        for number, line in lines:
            parsed = _parse(line)
            if parsed is None:
                continue
            body, negated, folder_only, by_name = parsed
            translated = translate(body, by_name=by_name)
            if translated is None:
                continue
            patterns.append(Pattern(line, number, negated, folder_only, by_name, re.compile(translated, flags)))
            if not by_name:
                path_sources.append(translated)
            elif ignore_case:
                name_sources.append(translated)
            elif is_literal(body):
                names.add(body)
            elif body[:1] == b"*" and is_literal(body[1:]):
                suffixes.append(body[1:])
            else:
                name_sources.append(translated)
        self.patterns = tuple(reversed(patterns))
        self._names = frozenset(names)
        self._suffixes = tuple(suffixes)
        self._names_regex = _any_of(name_sources, flags)
        self._paths_regex = _any_of(path_sources, flags)

    def match(self, name: bytes, folder: bytes, *, is_folder: bool) -> Pattern | None:
        """The pattern that decides for `folder` + `name`, or None. `folder` is the path from this file's
        folder to the entry's, with a slash at its end, or b"". Negated patterns are returned too."""
        if not (
            name in self._names
            or name.endswith(self._suffixes)
            or (self._names_regex is not None and self._names_regex(name))
            or (self._paths_regex is not None and self._paths_regex(folder + name))
        ):
            return None
        path = folder + name
        for pattern in self.patterns:
            if pattern.folder_only and not is_folder:
                continue
            if pattern.regex.match(name if pattern.by_name else path):
                return pattern
        return None


@lru_cache(maxsize=512)
def parse_file(content: bytes, source: bytes, *, ignore_case: bool = False) -> PatternFile | None:
    """The patterns of an ignore file's bytes, or None when it has none. Kept by content: a walk reads every
    ignore file again, and compiles only what changed."""
    patterns = PatternFile(split_lines(content), source, ignore_case=ignore_case)
    return patterns if patterns.patterns else None


def split_lines(content: bytes) -> list[tuple[int, bytes]]:
    """Numbered lines without comments and unescaped spaces at their end."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    lines = []
    for number, line in enumerate(content.split(b"\n"), 1):
        line = line.removesuffix(b"\r").partition(b"\0")[0]
        if line and not line.startswith(b"#"):
            lines.append((number, _without_trailing_spaces(line)))
    return lines


def _without_trailing_spaces(line: bytes) -> bytes:
    end = len(line.rstrip(b" "))
    backslashes = end - len(line[:end].rstrip(b"\\"))
    if end < len(line) and backslashes % 2:
        end += 1
    return line[:end]


def _parse(line: bytes) -> tuple[bytes, bool, bool, bool] | None:
    """(pattern without its marks, negated, only folders, matched by name); None for a line that matches
    nothing."""
    negated = line.startswith(b"!")
    body = line[1:] if negated else line
    folder_only = body.endswith(b"/")
    if folder_only:
        body = body[:-1]
    if not body or body == b"/":
        return None
    return body, negated, folder_only, b"/" not in body


def _any_of(sources: Sequence[bytes], flags: int) -> Callable[[bytes], re.Match[bytes] | None] | None:
    return re.compile(b"|".join(sources), flags).match if sources else None
