"""What every way in (command line, HTTP, MCP) asks for, and the one shape it is answered in.

The engine is a Backend in this process; the HTTP client is a Backend that talks to a running daemon. Answers are
JSON-ready dicts with the fields of the outer contract. What must stay true: both give the same answer to the same
question, and raise the same UserError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ragd.store.types import Client

Answer = dict[str, Any]
Progress = Callable[[Mapping[str, Any]], None]
"""Called now and then with {"done", "total", "path", "texts_embedded"} while a sync runs."""

OWNER = Client(name="owner", labels=None)
"""The person whose files these are: their own command line, through the socket in the 0700 folder."""


class Backend(Protocol):
    """Every method may raise UserError (daemon/errors.py) and FilterError (store/errors.py), and nothing else
    on purpose. Thread-safe."""

    def status(self, client: Client) -> Answer: ...

    def search(self, client: Client, params: Mapping[str, Any]) -> Answer:
        """`params` has the long option names as keys: query, k, mode, expand and the filters."""

    def get(self, client: Client, params: Mapping[str, Any]) -> Answer:
        """`params`: path (absolute, or relative to a root), start, end; or id, with parent / neighbours."""

    def why(self, client: Client, path: str) -> Answer: ...

    def preview(self, client: Client, params: Mapping[str, Any]) -> Answer:
        """`params`: path, chunker, set (a mapping of [chunking] keys)."""

    def sync(self, client: Client, paths: Sequence[str], progress: Progress | None = None) -> Answer:
        """Returns when what was asked for is in. No paths: every root."""

    def forget(self, client: Client, params: Mapping[str, Any]) -> Answer:
        """`params`: path, or confirm (a root's name or path)."""

    def failures(self, client: Client) -> Answer: ...

    def close(self) -> None: ...
