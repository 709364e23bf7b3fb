"""What the tests of the command line share: a backend that answers what it is told to, and a way to ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ragd.daemon.cli import connect
from ragd.daemon.cli.main import main

Ask = Callable[..., tuple[int, str, str]]

HIT = {
    "id": "abc",
    "path": "/notes/a.md",
    "rel": "a.md",
    "root": "notes",
    "type": "markdown",
    "kind": "prose",
    "title": "T",
    "section": ["S / 1", "x"],
    "start_line": 3,
    "end_line": 5,
    "page": None,
    "score": 0.875,
    "text": "  first\n  \x1b[31mred\n" + "  more\n" * 10,
    "stale": True,
}
STATUS = {
    "state": "indexing",
    "version": "0.1.0",
    "model": "m",
    "generation": {"live": 1, "building": 2, "done": 10, "total": 1200},
    "roots": [{"path": "/notes", "state": "ok", "files": 12, "chunks": 3456, "watch": "native"}],
    "pending": 3,
    "failed": 1,
    "chunks": 3456,
    "last_walk": "2026-01-01T00:00:00Z",
    "problems": ["disk is full"],
}
SYNC: dict[str, Any] = {
    "files": {"seen": 9, "indexed": 2, "unchanged": 7, "moved": 0, "forgotten": 0, "skipped": 0, "failed": 0},
    "chunks": {"added": 5, "kept": 1, "removed": 2, "total": 1040},
    "embedded": {"texts": 5, "tokens": 99, "seconds": 0.1},
    "failures": [],
    "seconds": 0.5,
}


class FakeBackend:
    """Answers what it is told to and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.raises: BaseException | None = None
        self.sync_answer = SYNC
        self.closed = 0

    def _answer(self, name: str, question: Any, answer: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((name, question))
        if self.raises is not None:
            raise self.raises
        return answer

    def status(self, _client: object) -> dict[str, Any]:
        return self._answer("status", None, STATUS)

    def search(self, _client: object, params: Mapping[str, Any]) -> dict[str, Any]:
        return self._answer("search", params, {"query": params["query"], "hits": [HIT], "notice": None})

    def get(self, _client: object, params: Mapping[str, Any]) -> dict[str, Any]:
        return self._answer("get", params, {"path": "/a", "start_line": 1, "end_line": 2, "text": "one\ntwo\n"})

    def why(self, _client: object, path: str) -> dict[str, Any]:
        return self._answer("why", path, {"path": path, "state": "ignored", "reason": "gitignore", "rule": "*.log"})

    def sync(self, _client: object, paths: Sequence[str], progress: object = None) -> dict[str, Any]:
        assert progress is None, "no bar where standard error is not a terminal"
        return self._answer("sync", list(paths), self.sync_answer)

    def forget(self, _client: object, params: Mapping[str, Any]) -> dict[str, Any]:
        return self._answer("forget", params, {"forgotten": 4, "root": "notes"})

    def failures(self, _client: object) -> dict[str, Any]:
        failure = {"path": "/notes/b.md", "reason": "timeout", "detail": "slow"}
        return self._answer("failures", None, {"failures": [failure]})

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg-config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg-data"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RAGD_CONFIG", raising=False)
    monkeypatch.delenv("RAGD_DEBUG", raising=False)
    (tmp_path / "notes").mkdir()
    file = tmp_path / "config.toml"
    file.write_text('[store]\npath = "state"\n[[root]]\npath = "notes"\n')
    return file


@pytest.fixture
def own_backend(monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """No daemon runs: the command works with this one, in its own process."""
    fake = FakeBackend()
    monkeypatch.setattr(connect, "open_here", lambda _config: fake)
    return fake


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """A daemon runs, and this is its client."""
    fake = FakeBackend()
    monkeypatch.setattr(connect, "find_running", lambda _config: fake)
    return fake


@pytest.fixture
def ask(config_file: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Ask:
    """Runs a command line with the configuration; gives exit code, standard output, standard error."""

    def run(*arguments: str, configured: bool = True) -> tuple[int, str, str]:
        code = main([*(["--config", str(config_file)] if configured else []), *arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run
