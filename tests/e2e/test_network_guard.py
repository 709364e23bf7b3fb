"""Nothing leaves the machine, and nothing but the protocol is on MCP's standard output: daemon, command line and MCP
with the real default model, an empty HOME, and every connection watched from inside (Python's audit events) and from
outside (the kernel's list of sockets).
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from process_kit import wait_for
from ragd_kit import Ragd
from site_kit import Site, is_local

pytestmark = [pytest.mark.process, pytest.mark.chroma, pytest.mark.timeout(300)]

FILES = 10
WORDS_OF_A_BAD_LOG = ("telemetry", "posthog", "fork", "huggingface.co", "traceback")
READY_S = 60.0
"""FAULTS E4 asks for 15 s on a machine that has nothing else to do."""


@contextmanager
def sockets_of(pids: Callable[[], list[int]]) -> Iterator[set[tuple[str, int]]]:
    """The far ends, outside this machine, of every socket these processes are seen to have."""
    found: set[tuple[str, int]] = set()
    stopping = threading.Event()

    def look() -> None:
        while not stopping.wait(0.05):
            for pid in pids():
                try:
                    sockets = psutil.Process(pid).net_connections("inet")
                except psutil.Error:
                    continue
                found.update(tuple(each.raddr) for each in sockets if each.raddr and not is_local(tuple(each.raddr)))

    looking = threading.Thread(target=look, name="sockets")
    looking.start()
    try:
        yield found
    finally:
        stopping.set()
        looking.join()


def rpc(number: int | None, method: str, **params: Any) -> str:
    """One line of JSON-RPC; without a number, a notification."""
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if number is None else message | {"id": number})


def tool(number: int, name: str, **arguments: Any) -> str:
    return rpc(number, "tools/call", name=name, arguments=arguments)


def session() -> list[str]:
    """What an assistant sends in a session; the numbered ones are answered."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return [
        rpc(1, "initialize", **hello),
        rpc(None, "notifications/initialized"),
        rpc(2, "tools/list"),
        tool(3, "status"),
        tool(4, "search", query="where does the heron stand?", k=3),
        tool(5, "sync"),
        tool(6, "get", path="/nowhere/at/all.md"),
        tool(7, "search", query="", k=3),
        tool(8, "no such tool"),
        "this is no JSON",
    ]


def run_session(ragd: Ragd) -> tuple[list[dict[str, Any]], bytes]:
    """A whole `ragd mcp` session, ended by the assistant: its answers, and standard error."""
    with subprocess.Popen(
        ragd.command("mcp"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ragd.elsewhere,
        env=ragd.environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines: list[bytes] = []
        wanted = set(range(1, 9))
        reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()), name="mcp-answers")
        reader.start()
        for line in session():
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
            if line == session()[0]:
                wait_for("MCP is initialized", lambda: lines)
        wait_for("every call is answered", lambda: wanted <= {_parsed(line).get("id") for line in list(lines)}, 90)
        process.stdin.close()
        assert process.wait(20) == 0
        reader.join()
        assert process.stderr is not None
        errors = process.stderr.read()
    return [_parsed(line) for line in lines], errors


def _parsed(line: bytes) -> dict[str, Any]:
    """FAULTS G5: every line is a JSON-RPC message."""
    message: dict[str, Any] = json.loads(line)
    assert message["jsonrpc"] == "2.0"
    return message


@pytest.mark.model
def test_law_nothing_leaves_the_machine(ragd: Ragd, tmp_path: Path) -> None:
    """FAULTS E4, E10, G5; as a system unit starts it: another working directory, and no HOME."""
    site = Site(tmp_path / "site")
    ragd.env |= {"PYTHONPATH": str(site.folder), "HOME": None}
    ragd.configure(model=None)
    for number in range(FILES):
        (ragd.docs / f"n{number}.md").write_text(f"# Note {number}\n\nThe heron stands in pond number {number}.\n")
    errors: list[bytes] = []
    with sockets_of(ragd.processes) as far_ends:
        began = time.monotonic()
        ragd.start()
        wait_for("the model is ready", lambda: ragd.status()["model_state"] == "ready", READY_S)
        print(f"\nready after {time.monotonic() - began:.1f} s")
        for command in (["sync"], ["search", "where does the heron stand?"], ["--json", "status"]):
            done = ragd.cli(*command)
            assert done.returncode == 0, done.stderr
            errors.append(done.stderr.encode())
        assert len(ragd.search("a bird at the water", "dense")) == 5
        _ask_over_tcp(ragd)
        answers, mcp_errors = run_session(ragd)
        errors.append(mcp_errors)
        assert ragd.daemon.stop() == 0
        # a command that works alone, with a model of its own
        (ragd.docs / "one more.md").write_text("# One more\n\nAnother heron.\n")
        done = ragd.cli("sync", seconds=120)
        assert done.returncode == 0, done.stderr
        errors.append(done.stderr.encode())
    by_number = {answer.get("id"): answer for answer in answers}
    hits = by_number[4]["result"]["structuredContent"]["hits"]
    assert hits[0]["citation"].startswith(str(ragd.docs))
    assert by_number[6]["result"]["isError"]

    assert site.connects() == []
    assert far_ends == set()
    said = (ragd.daemon.said() + b"\n".join(errors).decode()).lower()
    assert [word for word in WORDS_OF_A_BAD_LOG if word in said] == []
    assert ragd.daemon.out.read_bytes() == b""
    watched = [" ".join(line) for line in site.started()]
    for program in ("ragd.store.chroma.child", "ragd.daemon.parsing.child", " run", " mcp", " search", " sync"):
        assert any(program in line for line in watched), f"{program} was not watched"


@pytest.mark.model
def test_fault_e10_nothing_is_kept_in_the_home_folder(ragd: Ragd) -> None:
    """No cache of a model hub, no model that Chroma fetches for itself."""
    ragd.configure(model=None)
    (ragd.docs / "a.md").write_text("# A\n\nThe heron stands in the pond.\n")
    ragd.start()
    ragd.wait_idle()
    assert ragd.search("a bird at the water", "dense")
    assert ragd.daemon.stop() == 0
    assert list(ragd.home.rglob("*")) == []
    assert list(ragd.elsewhere.iterdir()) == []


def test_fault_e4_a_model_that_is_not_here_is_named_with_what_helps(ragd: Ragd, tmp_path: Path) -> None:
    site = Site(tmp_path / "site")
    ragd.env["PYTHONPATH"] = str(site.folder)
    ragd.configure(model="someone/a-model-nobody-has", embedding={"offline": True})
    started = ragd.start(ready=False)
    assert started.ended(60) == 6
    assert "someone/a-model-nobody-has" in started.said()
    assert "Traceback" not in started.said()
    assert str(ragd.home) in started.said(), "where it was looked for"
    assert "offline" in started.said()
    assert site.connects() == []


def test_the_guard_sees_what_it_is_there_to_see(ragd: Ragd, tmp_path: Path) -> None:
    """Loopback is let through, everything else is noted, in a process that was started like the others."""
    site = Site(tmp_path / "site")
    ragd.env["PYTHONPATH"] = str(site.folder)
    program = (
        "import socket\n"
        "far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "far.connect(('127.0.0.1', 9))\n"
        "try:\n    far.connect(('192.0.2.1', 9))\nexcept OSError:\n    pass\n"
        "try:\n    socket.getaddrinfo('model-hub.invalid', 443)\nexcept OSError:\n    pass\n"
    )
    subprocess.run([ragd.command()[0], "-c", program], env=ragd.environment(), check=True, timeout=60)
    assert [line[1:3] for line in site.connects()] == [
        ["socket.connect", repr(("192.0.2.1", 9))],
        ["socket.getaddrinfo", repr("model-hub.invalid")],
    ]


def _ask_over_tcp(ragd: Ragd) -> None:
    token = (ragd.state / "token").read_text().strip()
    address = wait_for(
        "it says where it serves",
        lambda: next((word for word in ragd.daemon.said().split() if word.startswith("http://127.0.0.1:")), None),
    )
    with httpx.Client(base_url=str(address), trust_env=False, timeout=30) as client:
        asked = client.post("/v1/search", json={"query": "heron"}, headers={"Authorization": f"Bearer {token}"})
        assert asked.status_code == 200, asked.text
        assert asked.json()["hits"]
