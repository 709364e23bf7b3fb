"""A Chroma process whose daemon is gone before it has opened anything ends at once: it holds the lock on the state
folder, and a new daemon waits for that."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ragd.store.chroma.wire import Request, encode

pytestmark = [pytest.mark.process]


def test_fault_f12_a_child_that_is_still_loading_ends_with_its_daemon(tmp_path: Path) -> None:
    """Importing chromadb takes seconds, and much longer on a busy machine."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "chromadb.py").write_text(
        "import pathlib, time\npathlib.Path(__file__).with_name('begun').touch()\ntime.sleep(600)\n"
    )
    ours, theirs = socket.socketpair()
    with theirs:
        child = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "ragd.store.chroma.child", str(tmp_path / "chroma")),
                *(f"--socket={theirs.fileno()}", f"--parent={os.getpid()}"),
            ],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
            cwd="/",
        )
    try:
        hello = encode(Request(1, "hello"))
        ours.send(len(hello).to_bytes(4, "big") + hello)
        while not (tmp_path / "site" / "begun").exists():
            assert child.poll() is None
        ours.close()
        assert child.wait(20) == 0
        assert not (tmp_path / "chroma").exists()
    finally:
        child.kill()
        child.wait()
        ours.close()
