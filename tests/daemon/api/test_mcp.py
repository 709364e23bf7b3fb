"""MCP over standard input and output, in a process of its own that prints all it can."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from api_kit import HIT, FakeBackend

from ragd.daemon import requests
from ragd.daemon.api.app import create_app
from ragd.daemon.api.auth import SocketOwner
from ragd.daemon.api.mcp import Tools, citation
from ragd.daemon.api.server import ApiServer
from ragd.daemon.api.sockets import bind_unix
from ragd.daemon.api.tools import GET, INSTRUCTIONS, SEARCH, STATUS, SYNC, TOOLS
from ragd.daemon.backend import OWNER
from ragd.daemon.errors import NoDaemonError, NotFoundError
from ragd.store.errors import FilterError

NOISY_SERVER = """
import os, subprocess, sys, warnings
from pathlib import Path
from ragd.daemon.api.mcp import claim_stdout, serve_stdio
wire = claim_stdout()
from ragd.daemon.api.client import find_daemon
from ragd.daemon.errors import NoDaemonError

def noise():
    print("a library prints")
    sys.stdout.write("without a newline")
    sys.stdout.flush()
    sys.__stdout__.write("to the saved stream\\n")
    sys.__stdout__.flush()
    os.write(1, b"raw bytes on descriptor 1\\n")
    subprocess.run([sys.executable, "-c", "print('a child prints')"], check=True)
    warnings.warn("a warning")

def connect():
    noise()
    backend = find_daemon(Path(sys.argv[1]))
    if backend is None:
        raise NoDaemonError("no daemon is running; start it with `ragd run`")
    return backend

noise()
serve_stdio(connect, "1.2.3", wire=wire)
"""


class Session:
    """A client of the server in a child process. `lines` is every line it wrote to standard output."""

    def __init__(self, socket_path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "always", "-c", NOISY_SERVER, str(socket_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.lines: list[bytes] = []
        self.errors = b""
        self._number = 0
        self._draining = threading.Thread(target=self._drain)
        self._draining.start()

    def _drain(self) -> None:
        assert self.process.stderr is not None
        self.errors = self.process.stderr.read()

    def send(self, message: dict[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        raw = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(raw + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("id") == self._number:
                return message

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server ended"
        self.lines.append(line)
        message: dict[str, Any] = json.loads(line)
        return message

    def start(self) -> dict[str, Any]:
        client = {"name": "test", "version": "1"}
        answer = self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self.send({"method": "notifications/initialized"})
        result: dict[str, Any] = answer["result"]
        return result

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = self.ask("tools/call", name=name, arguments=arguments)["result"]
        return result

    def end(self) -> None:
        """Ends by the end of its input, as clients do."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.lines += self.process.stdout.readlines()
        assert self.process.wait(10) == 0
        self._draining.join(10)

    def close(self) -> None:
        """Whatever happened before, nothing is left."""
        self.process.kill()
        self.process.wait(10)
        self._draining.join(10)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()


@pytest.fixture
def socket_path(tmp_path: Path, backend: FakeBackend) -> Iterator[Path]:
    path = tmp_path / "ragd.sock"
    server = ApiServer([(bind_unix(path), create_app(backend, SocketOwner()))], socket_path=path)
    server.start()
    yield path
    server.stop()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """The server; it looks for the daemon where the fixture `socket_path` puts it."""
    made = Session(tmp_path / "ragd.sock")
    yield made
    made.close()


@pytest.mark.process
@pytest.mark.usefixtures("socket_path")
def test_fault_g5_nothing_but_protocol_on_standard_output(session: Session, backend: FakeBackend) -> None:
    begun = session.start()
    assert begun["serverInfo"]["name"] == "ragd"
    assert begun["serverInfo"]["version"] == "1.2.3"
    assert "never instructions" in begun["instructions"]
    listed = {tool["name"]: tool for tool in session.ask("tools/list")["result"]["tools"]}
    assert set(listed) == {"search", "get", "status", "sync"}
    assert listed["search"]["annotations"]["readOnlyHint"] is True
    assert listed["sync"]["annotations"]["readOnlyHint"] is False

    found = session.call("search", query="größer", k=3)
    assert found["structuredContent"]["hits"] == [{**HIT, "citation": "/home/me/a.md:3-5"}]
    assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
    answers = {
        "search": found,
        "get": session.call("get", path="/home/me/a.md:3-5"),
        "status": session.call("status"),
        "sync": session.call("sync", paths=["/home/me"]),
    }
    for name, answer in answers.items():
        assert not answer.get("isError")
        jsonschema.validate(answer["structuredContent"], listed[name]["outputSchema"])
    assert answers["get"]["structuredContent"]["citation"] == "/home/me/a.md:3-5"

    for name, arguments in (
        ("search", {"limit": 3, "query": "x"}),
        ("search", {}),
        ("status", {"a": 1}),
        ("nothing", {}),
    ):
        assert session.call(name, **arguments)["isError"] is True
    backend.raises = NotFoundError("not here")
    refused = session.call("get", path="/x")
    assert refused["isError"] is True
    assert "not here" in refused["content"][0]["text"]
    assert "error" in session.ask("no/such/method")
    session.send(b"this is no JSON")
    assert session.ask("ping")["result"] == {}
    session.end()

    assert len(session.lines) >= 12
    for line in session.lines:
        assert json.loads(line)["jsonrpc"] == "2.0"
        assert line.endswith(b"\n")
    for noise in (b"a library prints", b"without a newline", b"saved stream", b"raw bytes", b"a child prints"):
        assert noise in session.errors


@pytest.mark.process
def test_without_a_daemon_it_stays_up_and_names_the_cure(
    session: Session, tmp_path: Path, backend: FakeBackend
) -> None:
    path = tmp_path / "ragd.sock"
    session.start()
    assert len(session.ask("tools/list")["result"]["tools"]) == 4
    for name, arguments in (("status", {}), ("search", {"query": "x"}), ("sync", {})):
        answer = session.call(name, **arguments)
        assert answer["isError"] is True
        assert "ragd run" in answer["content"][0]["text"]
    for _ in range(2):  # it comes, goes, and comes again
        server = ApiServer([(bind_unix(path), create_app(backend, SocketOwner()))], socket_path=path)
        server.start()
        assert session.call("status")["structuredContent"]["state"] == "idle"
        server.stop()
        assert session.call("status")["isError"] is True
    session.end()
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in session.lines)


@pytest.mark.process
@pytest.mark.usefixtures("socket_path")
def test_the_end_of_input_ends_it_though_a_sync_is_running(session: Session, backend: FakeBackend) -> None:
    session.start()
    backend.held = threading.Event()
    session.send({"id": 99, "method": "tools/call", "params": {"name": "sync", "arguments": {}}})
    assert backend.entered.wait(20)
    assert session.call("status")["structuredContent"]["state"] == "idle"
    try:
        session.end()
    finally:
        backend.held.set()


# --- without a process


def test_the_schemas_are_what_is_read() -> None:
    for tool, shape in ((SEARCH, requests._Search), (GET, requests._Get), (SYNC, requests._Sync)):
        assert set(tool.input_schema["properties"]) == set(shape.model_fields)
        needed = {name for name, field in shape.model_fields.items() if field.is_required()}
        assert set(tool.input_schema["required"]) == needed
    assert STATUS.input_schema["properties"] == {}
    for tool in TOOLS:
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
    assert "not" in INSTRUCTIONS


def test_citations() -> None:
    place = {"path": "/a.md", "start_line": 3, "end_line": 5}
    assert citation(place) == "/a.md:3-5"
    assert citation({**place, "page": 7}) == "/a.md (page 7)"
    assert citation({"path": "/a.xlsx", "start_line": 0, "locator": "Sheet1!A1"}) == "/a.xlsx (Sheet1!A1)"


def test_the_tools_find_a_restarted_daemon(backend: FakeBackend) -> None:
    connected: list[FakeBackend] = []

    def connect() -> FakeBackend:
        connected.append(FakeBackend() if connected else backend)
        return connected[-1]

    tools = Tools(connect, OWNER)
    assert tools.call("status", {})["state"] == "idle"
    backend.raises = NoDaemonError("gone")
    assert tools.call("search", {"query": "x"})["hits"][0]["citation"] == "/home/me/a.md:3-5"
    assert len(connected) == 2
    with pytest.raises(FilterError, match="known: search"):
        tools.call("context", {})
