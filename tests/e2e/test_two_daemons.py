"""One daemon on one state: locks that a kill leaves, two starts at once, a port that is taken, stops and restarts."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from pathlib import Path

import httpx
import pytest
from garden_kit import Garden
from process_kit import is_alive, wait_for
from ragd_kit import Ragd
from site_kit import Site
from truth_kit import assert_store_is_true

pytestmark = [pytest.mark.process, pytest.mark.chroma, pytest.mark.timeout(300)]


def test_fault_f12_a_lock_that_a_kill_left_blocks_nothing(ragd: Ragd) -> None:
    """Also when the lock file names a process that lives and has nothing to do with it."""
    (ragd.docs / "a.md").write_text("# A\n\nzqa stands here.\n")
    ragd.start()
    ragd.wait_idle()
    [child] = ragd.chroma_pids()
    ragd.daemon.kill()
    lock = ragd.state / "lock"
    assert lock.exists()
    lock.write_text(f"{os.getpid()}\n")
    ragd.start()
    assert lock.read_text() == f"{ragd.daemon.pid}\n"
    ragd.wait_idle()
    assert [hit["rel"] for hit in ragd.search("zqa")] == ["a.md"]
    assert not is_alive(child)
    assert len(ragd.chroma_pids()) == 1
    assert ragd.daemon.stop() == 0


def test_fault_f12_of_two_daemons_started_at_once_one_runs(ragd: Ragd) -> None:
    (ragd.docs / "a.md").write_text("# A\n\nzqa stands here.\n")
    both = [ragd.start(ready=False), ragd.start(ready=False)]
    wait_for("one of the two has ended", lambda: [life for life in both if not life.is_running], 90)
    [loser] = [life for life in both if not life.is_running]
    [winner] = [life for life in both if life.is_running]
    assert loser.process.returncode == 4
    assert str(ragd.state) in loser.said()
    assert "Traceback" not in loser.said()
    wait_for("the other one answers", ragd.try_status)
    began = time.monotonic()
    third = ragd.start(ready=False)
    assert third.ended(60) == 4
    assert time.monotonic() - began < 20, "with a daemon that answers there is nothing to wait for"
    ragd.wait_idle()
    assert [hit["rel"] for hit in ragd.search("zqa")] == ["a.md"]
    assert len(ragd.chroma_pids()) == 1
    assert winner.stop() == 0
    assert ragd.processes() == []


def test_fault_d1_commands_ask_the_daemon_that_runs(ragd: Ragd) -> None:
    """No second process ever opens the store: what the daemon has just indexed, the command line finds."""
    ragd.start()
    ragd.wait_idle()
    for number in range(3):
        (ragd.docs / f"{number}.md").write_text(f"# N\n\nzqw{number}z stands here.\n")
        found = ragd.cli("sync", str(ragd.docs / f"{number}.md"))
        assert found.returncode == 0, found.stderr
        assert f"{number}.md" in ragd.cli("search", f"zqw{number}z", "--mode", "lexical").stdout
        assert f"{number}.md" in ragd.cli("search", f"N zqw{number}z stands here", "--mode", "dense", "-k", "1").stdout
    assert len(ragd.chroma_pids()) == 1
    assert ragd.daemon.stop() == 0


def test_fault_g11_a_port_in_use_is_named_and_the_store_is_not_opened(ragd: Ragd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ragd.configure(server={"port": port})
        started = ragd.start(ready=False)
        assert started.ended(60) == 8
        for part in ("127.0.0.1", str(port), "[server] port"):
            assert part in started.said()
        assert "Traceback" not in started.said()
        assert started.out.read_bytes() == b""
        assert {path.name for path in ragd.state.iterdir()} == {"lock"}

        ragd.configure()
        (ragd.docs / "a.md").write_text("# A\n\nzqa stands here.\n")
        ragd.start()
        ragd.wait_idle()
        assert ragd.daemon.stop() == 0
        before = _contents(ragd.state)
        ragd.configure(server={"port": port})
        assert ragd.start(ready=False).ended(60) == 8
        assert _contents(ragd.state) == before
    started = ragd.start()
    wait_for("it says where it serves", lambda: f"127.0.0.1:{port}" in started.said())
    assert started.stop() == 0


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "::1"])
def test_fault_g11_where_it_says_it_serves_it_answers(ragd: Ragd, host: str) -> None:
    try:
        socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError:
        pytest.skip(f"this machine has no {host}")
    ragd.configure(server={"port": 0, "host": host, "token_file": str(ragd.base / "token")})
    daemon = ragd.start()
    line = wait_for("it says where it serves", lambda: re.search(r"http://\S+", daemon.said()))
    token = (ragd.base / "token").read_text().strip()
    with httpx.Client(trust_env=False) as client:
        for base in (line.group(), line.group().replace("127.0.0.1", "localhost")):
            answer = client.get(f"{base}/v1/status", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 200, (base, answer.text)
        refused = client.get(f"{line.group()}/healthz", headers={"Host": "evil.example"})
        assert refused.status_code == 403
    assert daemon.stop() == 0


def test_fault_g11_a_restart_right_after_the_stop_works(ragd: Ragd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    ragd.configure(server={"port": port})
    for _ in range(3):
        ragd.start()
        # a connection that is open when the daemon stops is what keeps a port in TIME_WAIT
        with socket.create_connection(("127.0.0.1", port)) as asking:
            asking.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert asking.recv(100).startswith(b"HTTP/1.1 200")
            assert ragd.daemon.stop() == 0
    assert ragd.processes() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_stop_ends_everything_within_ten_seconds(ragd: Ragd, number: signal.Signals) -> None:
    ragd.start()
    ragd.wait_idle()
    began = time.monotonic()
    assert ragd.daemon.stop(number) == 0
    print(f"\n{number.name}: {time.monotonic() - began:.1f} s")
    assert ragd.processes() == []
    assert not (ragd.state / "ragd.sock").exists()
    assert "Traceback" not in ragd.daemon.said()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_stop_in_the_middle_of_bulk_work_ends_within_ten_seconds(
    ragd: Ragd, tmp_path: Path, number: signal.Signals
) -> None:
    """The batch under way ends, what is in stays, and the next start goes on without embedding anything again.
    Ctrl-C reaches every process of the terminal, Chroma's too."""
    import random

    site = Site(tmp_path / "site")
    ragd.env["PYTHONPATH"] = str(site.folder)
    ragd.configure(chunking={"target_tokens": 40, "max_tokens": 60})
    Garden(ragd.docs, random.Random(3)).plant(150)
    ragd.start()
    wait_for("some of it is in", lambda: ragd.status()["chunks"] > 300)
    assert ragd.status()["pending"] > 0
    began = time.monotonic()
    if number == signal.SIGINT:
        os.killpg(ragd.daemon.pid, signal.SIGINT)
    else:
        ragd.daemon.process.send_signal(number)
    assert ragd.daemon.ended(10) == 0
    print(f"\n{number.name} in the middle: {time.monotonic() - began:.1f} s")
    assert "Traceback" not in ragd.daemon.said()
    assert ragd.processes() == []
    ragd.start()
    chunks = ragd.wait_idle()["chunks"]
    assert ragd.daemon.stop() == 0
    assert assert_store_is_true(ragd.config_file, ragd.state, ragd.base / "copy") == chunks
    texts = [text for _, batch in site.batches() for text in batch]
    assert len(texts) == len(set(texts)), "texts were embedded twice"


def _contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file but the lock and the socket."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


def test_a_stop_while_chroma_still_loads_ends_within_ten_seconds(ragd: Ragd, tmp_path: Path) -> None:
    """On a slow machine that takes long; here it takes for ever. The process that loads ends with the daemon."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "chromadb.py").write_text("import time\ntime.sleep(600)\n")
    ragd.env["PYTHONPATH"] = str(site)
    (ragd.docs / "a.md").write_text("# A\n\nzqa stands here.\n")
    ragd.start()
    wait_for("Chroma's process is there", ragd.chroma_pids)
    wait_for("the file waits", lambda: ragd.status()["pending"] == 1)
    began = time.monotonic()
    assert ragd.daemon.stop() == 0
    print(f"\nstopped after {time.monotonic() - began:.1f} s")
    wait_for("nothing is left", lambda: not ragd.processes(), 5)
    assert "Traceback" not in ragd.daemon.said()
