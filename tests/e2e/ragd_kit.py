"""A real `ragd` for tests: folders and a configuration of its own, its processes, and ways to ask and to kill.

What must stay true: every process it started, and every process those started, can be found again by the TMPDIR
that only they have, so none is left behind and no other process is ever touched.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

from ragd.daemon.api.sockets import answers, socket_address

_Found = TypeVar("_Found")
POLL_S = 0.02
START_S = 90.0
"""For a start on a machine that is busy with other things."""
_CHILD = b"ragd.store.chroma.child"


def wait_for(what: str, probe: Callable[[], _Found], seconds: float = 60.0, poll_s: float = POLL_S) -> _Found:
    """The first true answer of `probe`. AssertionError with `what` and the last answer after `seconds`."""
    give_up_at = time.monotonic() + seconds
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() >= give_up_at:
            raise AssertionError(f"not within {seconds:g} s: {what}; last answer: {found!r}")
        time.sleep(poll_s)


def live_pids() -> list[int]:
    """Every process id on this machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def proc_file(pid: int, name: str) -> bytes:
    """A file of /proc/PID; empty when the process is gone, a zombie, or another user's."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def is_alive(pid: int) -> bool:
    """Whether it still runs; a zombie does not."""
    return proc_file(pid, "stat").rpartition(b")")[2][1:2] not in (b"", b"Z", b"X")


class Held:
    """A process that is not our child, by a descriptor: its number may become another process's, this does not."""

    def __init__(self, pid: int, is_it: Callable[[int], bool]) -> None:
        """ProcessLookupError when `pid` is not, or no longer, the process that is meant."""
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)
        if not is_it(pid):
            self.let_go()
            raise ProcessLookupError(pid)

    def kill(self) -> None:
        """SIGKILL; nothing when it has ended."""
        try:
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        except ProcessLookupError:
            return

    @property
    def has_ended(self) -> bool:
        return bool(select.select([self._descriptor], [], [], 0)[0])

    def let_go(self) -> None:
        os.close(self._descriptor)


@contextmanager
def held(pids: Sequence[int], is_it: Callable[[int], bool]) -> Iterator[list[Held]]:
    """Those of the processes that are still there and still the ones that are meant."""
    found: list[Held] = []
    try:
        for pid in pids:
            try:
                found.append(Held(pid, is_it))
            except ProcessLookupError:
                continue
        yield found
    finally:
        for process in found:
            process.let_go()


def cpu_seconds(pid: int) -> float:
    """User and system time a process used so far; 0 when it is gone."""
    fields = proc_file(pid, "stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


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


def is_chroma(command_line: bytes, folder: Path) -> bool:
    """Whether this is the command line of a Chroma process on `folder`. A zombie's is empty."""
    words = command_line.split(b"\0")
    return _CHILD in words and os.path.realpath(folder).encode() in words


class ChromaWatch:
    """Looks all the time how many Chroma processes live on a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stopping = threading.Event()
        self._known: dict[int, tuple[bytes, float]] = {}
        self.most_at_once = 0
        self.seen: set[int] = set()
        self.looks = 0
        self.moments: deque[list[int]] = deque(maxlen=5)
        """The last looks that found more than one."""
        self._thread = threading.Thread(target=self._run, name="chroma-watch")

    def __enter__(self) -> ChromaWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(POLL_S):
            found = [pid for pid in live_pids() if self._is_chroma(pid)]
            # what was found first may have ended before the last was looked at
            found = found if len(found) < 2 else [pid for pid in found if is_alive(pid)]
            self.looks += 1
            self.seen.update(found)
            self.most_at_once = max(self.most_at_once, len(found))
            if len(found) > 1:
                self.moments.append(found)

    def _is_chroma(self, pid: int) -> bool:
        """A process is looked at anew in its first seconds, when it may not have loaded its program yet, and later
        only while it is one of ours."""
        now = time.monotonic()
        line, first = self._known.get(pid, (b"", now))
        if now - first < 2.0 or is_chroma(line, self._folder):
            line = proc_file(pid, "cmdline")
            self._known[pid] = (line, first)
        return is_chroma(line, self._folder)
