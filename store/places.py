"""A place in a root as it goes out (absolute, relative, raw) and as it comes in; pure.

What must stay true: a path that went out comes back as the same place, also through a root that is a symbolic
link, and also when its bytes are not UTF-8.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping

from ragd.store.rows import path_text
from ragd.store.types import RootView

_SHOWN_BYTE = re.compile(rb"\\x([0-9a-f]{2})")


def place_fields(root: RootView, path: bytes) -> dict[str, object]:
    """`path` (absolute), `rel`, `root`, and `path_raw` (base64 of the bytes in the root) where `rel` is not
    the name on disk."""
    rel = path_text(path)
    fields: dict[str, object] = {"path": f"{root.path.rstrip('/')}/{rel}", "rel": rel, "root": root.name}
    try:
        path.decode("utf-8")
    except UnicodeDecodeError:
        fields["path_raw"] = base64.b64encode(path).decode("ascii")
    return fields


def shown_text(text: str) -> str:
    """The text as UTF-8 can carry it: bytes that came through a name of a file as \\xHH, other halves of
    surrogate pairs as "?"."""
    try:
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "replace")
    return raw.decode("utf-8", "backslashreplace")


def raw_paths(shown: str) -> list[bytes]:
    """The raw paths a shown one can mean: the text itself, then with its \\xHH read as bytes."""
    try:
        literal = shown.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        literal = shown.encode("utf-8", "surrogatepass")
    unescaped = _SHOWN_BYTE.sub(lambda match: bytes([int(match.group(1), 16)]), literal)
    return [literal] if unescaped == literal else [literal, unescaped]


def candidate_places(shown: str, roots: Mapping[str, RootView]) -> Iterator[tuple[RootView, bytes]]:
    """The places a path can mean, likeliest first: an absolute one in each root above it, innermost first; a
    relative one in every root. The path is taken as it stands: "." and ".." and links are the caller's.
    """
    if not shown.startswith("/"):
        for root in roots.values():
            for raw in raw_paths(shown):
                yield root, raw
        return
    above = [root for root in roots.values() if shown.startswith(root.path.rstrip("/") + "/")]
    for root in sorted(above, key=lambda root: len(root.path), reverse=True):
        for raw in raw_paths(shown[len(root.path.rstrip("/")) + 1 :]):
            yield root, raw
