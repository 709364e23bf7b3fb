"""A real `ragd` for tests: folders and a configuration of its own, its processes, and ways to ask and to kill.

What must stay true: every process it started, and every process those started, can be found again by the TMPDIR
that only they have, so none is left behind and no other process is ever touched.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from process_kit import POLL_S, Held, held, is_alive, is_chroma, live_pids, proc_file, wait_for

from ragd.daemon.api.sockets import answers, socket_address

START_S = 90.0
"""For a start on a machine that is busy with other things."""


@dataclass
class Daemon:
    """One life of `ragd run`."""

    process: subprocess.Popen[bytes]
    log: Path
    """What it wrote to standard error."""
    out: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def ended(self, seconds: float) -> int:
        """Its exit code, within `seconds`."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds:g} s; it said:\n{self.said()[-3000:]}") from None

    def stop(self, number: int = signal.SIGTERM, seconds: float = 10.0) -> int:
        """Its exit code after a signal, within `seconds`."""
        self.process.send_signal(number)
        return self.ended(seconds)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Ragd:
    """One installation: `docs` is its root, `state` its state folder."""

    base: Path
    lives: list[Daemon] = field(default_factory=list)
    env: dict[str, str | None] = field(default_factory=dict)
    """Added to the environment of what is started; None takes a variable away."""
    docs: Path = field(init=False)
    state: Path = field(init=False)
    logs: Path = field(init=False)
    """Where standard error and output of what is started are kept."""

    def __post_init__(self) -> None:
        self.docs, self.state, self.logs = self.base / "docs", self.base / "state", self.base
        for folder in (self.docs, self.home, self.temporary, self.elsewhere):
            folder.mkdir(parents=True)

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def temporary(self) -> Path:
        return self.base / "tmp"

    @property
    def elsewhere(self) -> Path:
        """The working directory of what is started."""
        return self.base / "elsewhere"

    @property
    def config_file(self) -> Path:
        return self.base / "ragd.toml"

    @property
    def chroma(self) -> Path:
        return self.state / "chroma"

    # --- configuration

    def configure(self, model: str | None = "hash:64", **sections: Mapping[str, Any]) -> None:
        """Write the configuration: the root `docs`, any free port, and these sections. None: the default model."""
        tables: dict[str, dict[str, Any]] = {"store": {"path": str(self.state)}, "server": {"port": 0}}
        if model is not None:
            tables["embedding"] = {"model": model}
        for name, keys in sections.items():
            tables.setdefault(name, {}).update(keys)
        lines = []
        for name, table in tables.items():
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
        lines += ["[[root]]", f"path = {json.dumps(str(self.docs))}", 'name = "docs"']
        self.config_file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
        own: dict[str, str | None] = {"HOME": str(self.home), "TMPDIR": str(self.temporary), **self.env}
        own["PYTHONFAULTHANDLER"] = "1"
        paths = [path for path in (own.get("PYTHONPATH"), os.environ.get("PYTHONPATH")) if path]
        own["PYTHONPATH"] = os.pathsep.join(paths) or None
        return kept | {name: value for name, value in own.items() if value is not None}

    # --- starting

    def start(self, *, ready: bool = True) -> Daemon:
        """`ragd run`; with `ready`, it answers when this returns."""
        number = len(self.lives)
        log, out = self.logs / f"stderr{number}.txt", self.logs / f"stdout{number}.txt"
        with log.open("wb") as errors, out.open("wb") as output:
            process = subprocess.Popen(
                self.command("run"),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=self.elsewhere,
                env=self.environment(),
                start_new_session=True,
            )
        self.lives.append(Daemon(process, log, out))
        if ready:
            self.wait_ready()
        return self.lives[-1]

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "ragd.daemon.cli.main", "--config", str(self.config_file), *arguments]

    @property
    def daemon(self) -> Daemon:
        return self.lives[-1]

    def wait_ready(self, seconds: float = START_S) -> None:
        """Until the newest life answers."""

        def is_ready() -> bool:
            if not self.daemon.is_running:
                raise AssertionError(f"ended with {self.daemon.process.returncode}:\n{self.daemon.said()[-3000:]}")
            return self.try_status() is not None

        wait_for("the daemon answers", is_ready, seconds)

    def cli(self, *arguments: str, seconds: float = 60.0, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """One command of the command line, to its end."""
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            cwd=self.elsewhere,
            env=self.environment(),
            check=False,
        )

    # --- asking

    def ask(self, method: str, path: str, /, seconds: float = 30.0, **params: Any) -> dict[str, Any]:
        """One request over the unix socket. httpx.TransportError when nobody answers."""
        with (
            socket_address(self.state / "ragd.sock") as address,
            httpx.Client(
                transport=httpx.HTTPTransport(uds=address, verify=False),
                base_url="http://localhost",
                timeout=seconds,
                trust_env=False,
            ) as client,
        ):
            body = {"params": params} if method == "GET" else {"json": params}
            response = client.request(method, path, **body)
        answer: dict[str, Any] = response.json()
        assert response.status_code == 200, (path, response.status_code, answer)
        return answer

    def status(self) -> dict[str, Any]:
        return self.ask("GET", "/v1/status")

    def try_status(self) -> dict[str, Any] | None:
        """None when nobody answers."""
        if not answers(self.state / "ragd.sock"):  # httpx does not close a socket that it could not connect
            return None
        try:
            return self.status()
        except (httpx.TransportError, OSError):
            return None

    def sync(self, seconds: float = 240.0) -> dict[str, Any]:
        """Have every root walked; returns when all of it is in."""
        return self.ask("POST", "/v1/sync", seconds)

    def search(self, query: str, mode: str = "hybrid", k: int = 5) -> list[dict[str, Any]]:
        hits: list[dict[str, Any]] = self.ask("POST", "/v1/search", query=query, mode=mode, k=k)["hits"]
        return hits

    def wait_idle(self, seconds: float = 240.0) -> dict[str, Any]:
        """A whole walk, and then nothing left to do."""
        self.sync(seconds)

        def done() -> dict[str, Any] | None:
            status = self.status()
            return status if status["state"] in ("idle", "degraded") and status["pending"] == 0 else None

        found = wait_for("the daemon has nothing left to do", done, seconds)
        assert found is not None
        return found

    # --- processes

    def processes(self) -> list[int]:
        """Every living process of this installation."""
        return [pid for pid in live_pids() if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        mark = f"TMPDIR={self.temporary}".encode()
        return mark in proc_file(pid, "environ").split(b"\0") and is_alive(pid)

    def chroma_pids(self) -> list[int]:
        """The living Chroma processes on this state."""
        return [pid for pid in live_pids() if self._is_chroma(pid)]

    def _is_chroma(self, pid: int) -> bool:
        return is_chroma(proc_file(pid, "cmdline"), self.chroma)

    @contextmanager
    def held_chroma(self) -> Iterator[list[Held]]:
        """The Chroma processes on this state, to be killed."""
        with held(self.chroma_pids(), self._is_chroma) as found:
            yield found

    def segment_files(self, names: Sequence[str]) -> list[Path]:
        """Those index files of Chroma that are there."""
        return [path for name in names for path in self.chroma.glob(f"*-*/{name}")]

    def clear_away(self) -> None:
        """End everything; AssertionError never, so that a failed test shows its own reason. With RAGD_TEST_STACKS in
        the environment, a daemon that still runs first writes to its log where each thread is."""
        for life in self.lives:
            if "RAGD_TEST_STACKS" in os.environ and life.is_running:
                life.process.send_signal(signal.SIGABRT)
                life.process.wait()
        for _ in range(100):
            left = self.processes()
            with held(left, self._is_ours) as found:
                for process in found:
                    process.kill()
            for life in self.lives:
                if life.process.poll() is None:
                    life.process.kill()
                life.process.wait()
            if not left:
                return
            time.sleep(POLL_S)
