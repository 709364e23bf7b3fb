"""Paths of files: raw bytes inside, text only on the way out.

What must stay true: a path in the catalog is the root's name plus the raw bytes of the path in the root,
separated by b"/", without a leading or trailing slash; b"" is the root itself.
"""

from __future__ import annotations

import base64
import os
import unicodedata
from collections.abc import Iterable, Iterator


def show(path: bytes) -> str:
    """For people and JSON: UTF-8, with bytes that are not UTF-8 as `\\xHH`."""
    return path.decode("utf-8", "backslashreplace")


def is_exact(path: bytes) -> bool:
    """Whether `show` loses nothing; otherwise an answer carries `encode_raw` beside it."""
    try:
        path.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def encode_raw(path: bytes) -> str:
    """The raw bytes as base64, for the `path_raw` field of answers."""
    return base64.b64encode(path).decode("ascii")


def absolute(path: str | bytes) -> bytes:
    """An absolute path without `.`, `..` and doubled slashes; symbolic links stay."""
    raw = os.path.abspath(os.fsencode(path))
    return raw.replace(b"\\", b"/") if os.sep == "\\" else raw


def join(folder: bytes, rest: bytes) -> bytes:
    """`folder` + "/" + `rest`, where either may be empty."""
    if not rest:
        return folder
    if not folder or folder.endswith(b"/"):
        return folder + rest
    return folder + b"/" + rest


def parent(path: bytes) -> bytes:
    """The folder a path in a root lies in; b"" for what lies at the top (and for the top itself)."""
    return path.rpartition(b"/")[0]


def name_of(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def is_under(path: bytes, folder: bytes) -> bool:
    """Whether `path` is `folder` or below it."""
    return not folder or path == folder or path.startswith(folder + b"/")


def ancestors(path: bytes) -> Iterator[bytes]:
    """The path's folders from the nearest up to the root (b""), without the path itself."""
    while path:
        path = parent(path)
        yield path


def relative(path: bytes, folder: bytes) -> bytes | None:
    """The path below an absolute folder, b"" for the folder itself, None outside of it."""
    if path == folder:
        return b""
    prefix = folder if folder.endswith(b"/") else folder + b"/"
    return path[len(prefix) :] if path.startswith(prefix) else None


def outermost(places: Iterable[bytes]) -> tuple[bytes, ...]:
    """The places that lie under no other one, in the order of their bytes (which is also the order of a
    walk)."""
    chosen: set[bytes] = set()
    for place in sorted(set(places), key=lambda place: place.count(b"/") + bool(place)):
        if place not in chosen and not any(folder in chosen for folder in ancestors(place)):
            chosen.add(place)
    return tuple(sorted(chosen))


def same_name(wanted: bytes, names: Iterable[bytes]) -> bytes:
    """The spelling on disk of a name, on file systems that take letter case or Unicode form for the same.

    An exact name wins; else the first (in byte order) that is equal after NFC and case folding; else the
    wanted one, which then names nothing that is there.
    """
    listed = sorted(names)
    if wanted in listed:
        return wanted
    key = _folded(wanted)
    return next((name for name in listed if _folded(name) == key), wanted)


def _folded(name: bytes) -> str:
    return unicodedata.normalize("NFC", os.fsdecode(name)).casefold()
