"""A home directory with the sample folder as ~/notes and a running daemon, for the examples of the pages.

Loaded by conftest.py under the name `garden_home`. What must stay true: only processes it started are ended.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from ragd.daemon.api.client import find_daemon
from ragd.daemon.backend import OWNER
from ragd.daemon.errors import NoDaemonError
from ragd.daemon.sample_folder import copy_sample

START_S = 150.0
PAGE_PORT = "8420"
"""The port that the pages name."""


class GardenHome:
    """Use it with `with`."""

    def __init__(self, home: Path, *, model: str | None) -> None:
        self.home = home
        self.notes = copy_sample(home / "notes")
        self.state = home / ".local" / "share" / "ragd"
        self._log = home / "log.txt"
        programs = home / "bin"
        programs.mkdir()
        (programs / "ragd").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ragd.daemon.cli.main "$@"\n')
        (programs / "ragd").chmod(0o755)
        config = home / ".config" / "ragd" / "config.toml"
        config.parent.mkdir(parents=True)
        embedding = "" if model is None else f'[embedding]\nmodel = "{model}"\n'
        config.write_text(f'{embedding}[server]\nport = 0\n[[root]]\npath = "~/notes"\n')
        self._daemon: subprocess.Popen[bytes] | None = None

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "LD_LIBRARY_PATH") if name in os.environ}
        path = f"{self.home / 'bin'}:{os.environ.get('PATH', os.defpath)}"
        return {**kept, "HOME": str(self.home), "PATH": path}

    def run(self, script: str, seconds: float = 50.0) -> subprocess.CompletedProcess[str]:
        """A shell script in the notes folder, to its end. The port of the pages stands for the real one."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace(f":{PAGE_PORT}", f":{self.port}")],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            cwd=self.notes,
            env=self.environment(),
            check=False,
        )

    @property
    def port(self) -> str:
        serving = re.search(r"http://127\.0\.0\.1:(\d+)", self._log.read_text())
        assert serving is not None, self._log.read_text()
        return serving[1]

    def __enter__(self) -> GardenHome:
        with self._log.open("wb") as log:
            self._daemon = subprocess.Popen(
                [sys.executable, "-m", "ragd.daemon.cli.main", "run"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=self.home,
                env=self.environment(),
            )
        give_up_at = time.monotonic() + START_S
        while not self._is_idle():
            if self._daemon.poll() is not None or time.monotonic() > give_up_at:
                self.__exit__(None, None, None)
                raise AssertionError(f"the daemon did not come up:\n{self._log.read_text()[-3000:]}")
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._daemon is not None
        if self._daemon.poll() is None:
            self._daemon.terminate()
        try:
            self._daemon.wait(20)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            self._daemon.wait()

    def _is_idle(self) -> bool:
        """Everything is in, and the model can be asked."""
        backend = find_daemon(self.state / "ragd.sock") if (self.state / "ragd.sock").exists() else None
        if backend is None:
            return False
        try:
            status = backend.status(OWNER)
        except NoDaemonError:
            return False
        finally:
            backend.close()
        return status["state"] == "idle" and status["chunks"] > 0 and status["model_state"] == "ready"
