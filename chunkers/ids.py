"""Ids of chunks and parents.

What must stay true: an id depends on nothing that moves when text moves: no offsets, no line numbers. The ordinal
counts only the equal ones of the same file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

from ragd.chunkers.decode import unified_newlines


class IdMaker:
    """Makes the ids of one file; ask in document order, because equal texts are told apart by their order."""

    def __init__(self, root: str, path: bytes) -> None:
        self._place = (root.encode("utf-8", "surrogateescape"), path)
        self._seen: Counter[bytes] = Counter()

    def chunk_id(self, kind: str, embedded_text: str) -> str:
        """blake2b-128 of (root, path, kind, embedded text, ordinal among equal ones), in hexadecimal."""
        return self._numbered((kind.encode(), unified_newlines(embedded_text).encode()))

    def parent_id(self, kind: str, section: Sequence[str], title: str) -> str:
        """The same of (root, path, kind, section path, title, ordinal)."""
        path = (str(len(section)), *section, title)
        return self._numbered((b"parent " + kind.encode(), *(part.encode() for part in path)))

    def _numbered(self, fields: tuple[bytes, ...]) -> str:
        state = _absorb(blake2b(digest_size=16), (*self._place, *fields))
        ordinal = self._seen[state.digest()]
        self._seen[state.digest()] += 1
        return _absorb(state, (str(ordinal).encode(),)).hexdigest()


def _absorb(state: blake2b, fields: Sequence[bytes]) -> blake2b:
    """Add fields, each with its length in front, so that no two lists of fields look alike."""
    for part in fields:
        state.update(len(part).to_bytes(8, "big"))
        state.update(part)
    return state
