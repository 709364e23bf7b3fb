"""A Backend that remembers what it was asked, answers what it was told, and can be held up.

Loaded by conftest.py under the name `api_kit`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ragd.daemon.backend import Answer, Progress
from ragd.daemon.requests import parse_forget, parse_get, parse_preview, parse_search
from ragd.store.types import Client

NOW = datetime(2024, 5, 1, 12, tzinfo=UTC)
HIT = {
    "id": "h1", "path": "/home/me/a.md", "rel": "a.md", "root": "notes", "type": "markdown", "kind": "text",
    "title": "A", "section": ["Top"], "start_line": 3, "end_line": 5, "page": None, "locator": None,
    "url": None, "modified": "2024-05-01T00:00:00Z", "labels": [], "tags": [], "score": 1.0,
    "scores": {"dense": 0.5, "lexical": 1.25}, "text": "größer <b> \u2028", "stale": False, "also_at": [],
}  # fmt: skip


class FakeBackend:
    """Reads parameters as the engine does. `raises` is raised by every call; `held` keeps a sync until it is
    set."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Client, Any]] = []
        self.raises: Exception | None = None
        self.state = "idle"
        self.held: threading.Event | None = None
        self.entered = threading.Event()
        self.progress: list[Mapping[str, Any]] = []

    def _record(self, name: str, client: Client, asked: object = None) -> None:
        self.calls.append((name, client, asked))
        if self.raises is not None:
            raise self.raises

    def status(self, client: Client) -> Answer:
        self._record("status", client)
        return {"state": self.state, "version": "0", "chunks": 1, "roots": [], "problems": []}

    def search(self, client: Client, params: Mapping[str, Any]) -> Answer:
        request = parse_search(params, NOW)
        self._record("search", client, request)
        return {
            "query": request.query, "hits": [HIT], "mode_used": request.mode, "notice": None, "generation": 1,
            "pending": 0, "seconds": 0.1,
        }  # fmt: skip

    def get(self, client: Client, params: Mapping[str, Any]) -> Answer:
        request = parse_get(params)
        self._record("get", client, request)
        return {"path": "/home/me/a.md", "start_line": 3, "end_line": 5, "text": "text"}

    def why(self, client: Client, path: str) -> Answer:
        self._record("why", client, path)
        return {"path": path, "state": "indexed", "reason": None, "rule": None, "chunker": "auto"}

    def preview(self, client: Client, params: Mapping[str, Any]) -> Answer:
        request = parse_preview(params)
        self._record("preview", client, request)
        return {"path": request.path, "chunks": [], "dropped": []}

    def sync(self, client: Client, paths: Sequence[str], progress: Progress | None = None) -> Answer:
        self._record("sync", client, tuple(paths))
        self.entered.set()
        for step in self.progress:
            if progress is not None:
                progress(step)
        if self.held is not None:
            assert self.held.wait(30)
        return {"files": {"seen": 1}, "chunks": {"total": 1}, "embedded": {}, "failures": [], "seconds": 0.1}

    def forget(self, client: Client, params: Mapping[str, Any]) -> Answer:
        request = parse_forget(params)
        self._record("forget", client, request)
        return {"forgotten": 1}

    def failures(self, client: Client) -> Answer:
        self._record("failures", client)
        return {"failures": []}

    def close(self) -> None:
        self.calls.append(("close", Client("test"), None))
