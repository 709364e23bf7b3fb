"""The Chroma child as a process: kills, signals, restarts, turns, limits. Real processes, real Chroma."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from ragd.store.chroma import health
from ragd.store.chroma.client import BATCH_ROWS, BUSY_BATCH_ROWS, ChromaIndex
from ragd.store.chroma.process import ChromaProcess, child_environment
from ragd.store.chroma.wire import Answer, Request
from ragd.store.errors import DamagedError, LockedError, StoreError
from ragd.store.lock import StateLock
from ragd.store.types import VectorRow

NAME = "generation-1"
DIMENSION = 16
chroma = pytest.mark.chroma


def rows(count: int, start: int = 0) -> list[VectorRow]:
    vectors = np.random.default_rng(start).normal(size=(count, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [VectorRow(f"id{start + n}", vector, {"root": "r", "n": n}) for n, vector in enumerate(vectors)]


def wait_until(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ChromaIndex]:
    made = ChromaIndex(tmp_path / "chroma")
    made.create(NAME, DIMENSION)
    yield made
    made.close()


def kill(index: ChromaIndex) -> None:
    assert index.pid is not None
    os.kill(index.pid, signal.SIGKILL)


# --- one child
# -----------------------------------------------------------------------------------------------


@chroma
def test_nothing_is_started_before_the_first_call(tmp_path: Path) -> None:
    index = ChromaIndex(tmp_path / "chroma")
    assert index.pid is None
    assert not (tmp_path / "chroma").exists()
    assert index.collections() == []
    assert index.pid is not None
    index.close()
    assert index.pid is None


@chroma
def test_what_was_written_is_there_after_a_reopening(index: ChromaIndex) -> None:
    index.upsert(NAME, rows(250))
    index.close()
    again = ChromaIndex(index.folder)
    assert again.stopped_cleanly
    assert again.collections() == [NAME]
    assert again.check(NAME, 250, vectors=True) == []
    again.close()


@chroma
def test_the_folder_and_its_files_are_private(index: ChromaIndex) -> None:
    index.upsert(NAME, rows(1100))
    index.close()
    paths = [index.folder, *index.folder.rglob("*")]
    assert len(paths) > 5
    assert [str(path) for path in paths if path.stat().st_mode & 0o077] == []


@chroma
def test_signals_meant_for_the_daemon_do_not_stop_a_child(index: ChromaIndex) -> None:
    pid = index.pid
    assert pid is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(pid, number)
    index.upsert(NAME, rows(10))
    assert index.pid == pid
    assert index.count(NAME) == 10


@chroma
def test_fault_e10_the_child_is_silent_and_opens_no_connection(
    index: ChromaIndex, capfd: pytest.CaptureFixture[str]
) -> None:
    index.upsert(NAME, rows(10))
    index.query(NAME, rows(1)[0].vector, 3)
    assert psutil.Process(index.pid).net_connections(kind="inet") == []
    index.close()
    assert capfd.readouterr() == ("", "")


def test_the_child_gets_no_settings_from_the_environment() -> None:
    inherited = {
        "PATH": "/bin",
        "PYTHONPATH": "/somewhere",
        "PYTHONSTARTUP": "x",
        "CHROMA_API_IMPL": "x",
        "OTEL_EXPORTER": "x",
        "IS_PERSISTENT": "x",
        "ANONYMIZED_TELEMETRY": "True",
    }
    assert child_environment(inherited) == {
        "PATH": "/bin",
        "PYTHONPATH": "/somewhere",
        "ANONYMIZED_TELEMETRY": "False",
    }


@chroma
def test_fault_d10_space_and_search_width_are_set_at_creation(index: ChromaIndex) -> None:
    import sqlite3
    from contextlib import closing

    index.close()
    with closing(sqlite3.connect(index.folder / health.DATABASE)) as database:
        (schema,) = database.execute("select schema_str from collections").fetchone()
    hnsw = json.loads(schema)["keys"]["#embedding"]["float_list"]["vector_index"]["config"]
    assert hnsw["space"] == "cosine"
    assert 200 <= hnsw["hnsw"]["ef_search"] <= 400
    assert hnsw["embedding_function"] == {"type": "legacy"}


@chroma
def test_fault_d2_no_call_is_larger_than_the_limit_read_at_run_time(index: ChromaIndex) -> None:
    sent: list[int] = []
    ask = index._process.ask

    def recording(request: Request) -> Answer:
        sent.append(len(request.ids))
        return ask(request)

    index._process.ask = recording  # type: ignore[method-assign]  # watched
    index.count(NAME)
    assert index._process.max_batch > BATCH_ROWS
    index._process.max_batch = 7
    index.upsert(NAME, rows(50))
    index.delete(NAME, [f"id{n}" for n in range(20)])
    assert index.count(NAME) == 30
    assert max(sent) == 7


@chroma
def test_fault_d6_dropping_gives_the_disk_back(index: ChromaIndex) -> None:
    sizes = []
    for round_number in range(3):
        name = f"generation-{round_number + 10}"
        index.create(name, DIMENSION)
        index.upsert(name, rows(1100))
        index.drop(NAME if round_number == 0 else f"generation-{round_number + 9}")
        assert len(health.segment_folders(index.folder)) == len(index.collections()) == 1
        sizes.append(sum(path.stat().st_size for path in index.folder.rglob("*") if path.is_file()))
    assert max(sizes) < 1.2 * min(sizes)


@chroma
def test_fault_d6_compacting_erases_deleted_text(tmp_path: Path) -> None:
    index = ChromaIndex(tmp_path / "chroma", documents=True)
    index.create(NAME, DIMENSION)
    (row,) = rows(1)
    index.upsert(NAME, [VectorRow("a", row.vector, {"title": "xqtitle"}, "the word zqsecret"), *rows(20)])
    index.delete(NAME, ["a"])
    index.compact()
    index.close()
    held = b"".join(path.read_bytes() for path in index.folder.rglob("*") if path.is_file())
    assert b"zqsecret" not in held
    assert b"xqtitle" not in held


# --- the child dies
# ------------------------------------------------------------------------------------------


@chroma
def test_a_killed_child_is_replaced_and_nothing_acknowledged_is_lost(index: ChromaIndex) -> None:
    index.upsert(NAME, rows(120))
    first = index.pid
    kill(index)
    assert index.count(NAME) == 120
    assert index.pid != first
    assert index.check(NAME, 120, vectors=True) == []


@chroma
def test_an_upsert_during_which_the_child_is_killed_is_finished(index: ChromaIndex) -> None:
    process = index._process
    killed: list[int] = []
    done = threading.Event()

    def killer() -> None:
        """Kill each child once, a moment after it answered something."""
        while len(killed) < 3 and not done.wait(0.1):
            pid = index.pid
            if pid is not None and pid not in killed and process._deaths == 0:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        index.upsert(NAME, rows(1500))
    finally:
        done.set()
        thread.join()
    assert len(killed) >= 1
    assert process.starts == len(killed) + 1
    assert index.check(NAME, 1500, vectors=True) == []


@chroma
def test_a_frozen_child_is_an_error_and_its_late_answer_is_not_taken_for_another(tmp_path: Path) -> None:
    index = ChromaIndex(tmp_path / "chroma", answer_timeout_s=5.0)
    index.create(NAME, DIMENSION)
    index.upsert(NAME, rows(5))
    index._process._answer_timeout_s = 0.3
    assert index.pid is not None
    os.kill(index.pid, signal.SIGSTOP)
    for _ in range(2):
        with pytest.raises(StoreError, match="not answered"):
            index.count(NAME)
    os.kill(index.pid, signal.SIGCONT)
    index._process._answer_timeout_s = 30.0
    assert index.collections() == [NAME]
    assert index.count(NAME) == 5
    assert index._process.starts == 1
    index.close()


@chroma
def test_a_child_that_will_not_end_is_waited_for_and_never_killed(index: ChromaIndex) -> None:
    index.upsert(NAME, rows(5))
    pid = index.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(StoreError, match="still writing"):
        index.set_aside("test", wait_s=0.2)
    with pytest.raises(StoreError, match="still finishing"):
        index.count(NAME)
    assert psutil.pid_exists(pid)
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: gone(pid))
    assert index.count(NAME) == 5
    assert index.pid != pid
    assert health.folder_problems(index.folder) == []


def stub(tmp_path: Path, script: str) -> tuple[str, ...]:
    path = tmp_path / "stub.py"
    path.write_text(textwrap.dedent(script))
    return (sys.executable, str(path))


def stubbed(tmp_path: Path, script: str, now: list[float], slept: list[float]) -> ChromaProcess:
    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    return ChromaProcess(
        tmp_path / "chroma",
        lock_fd=None,
        documents=False,
        command=stub(tmp_path, script),
        clock=lambda: now[0],
        sleep=sleep,
    )


@pytest.mark.process
def test_fault_d7_a_child_that_keeps_dying_is_tried_with_growing_pauses(tmp_path: Path) -> None:
    now, slept = [0.0], [0.0]
    process = stubbed(tmp_path, "raise SystemExit(3)", now, slept)
    messages = []
    for _ in range(10):
        with pytest.raises(StoreError) as caught:
            process.ask(Request(0, "count", NAME))
        messages.append(str(caught.value))
    assert process.starts <= 5
    assert "exit code 3" in messages[0]
    assert "next try in" in messages[-1]
    assert max(slept) <= 1.0
    now[0] += 60
    with pytest.raises(StoreError, match="exit code 3"):
        process.ask(Request(0, "count", NAME))


@pytest.mark.process
def test_fault_d7_a_child_that_crashes_by_itself_again_and_again_means_damage(tmp_path: Path) -> None:
    now = [0.0]
    process = stubbed(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", now, [])
    outcomes = []
    for _ in range(6):
        with pytest.raises(StoreError, match="SIGSEGV") as caught:
            process.ask(Request(0, "count", NAME))
        outcomes.append(type(caught.value))
        now[0] += 60
    assert outcomes[-1] is DamagedError
    assert process.starts == 3
    process.forget_damage()
    with pytest.raises(StoreError, match="SIGSEGV"):
        process.ask(Request(0, "count", NAME))
    assert process.starts == 6


# --- the daemon dies
# -----------------------------------------------------------------------------------------

WRITER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    import numpy as np
    from ragd.store.chroma.client import ChromaIndex
    from ragd.store.lock import StateLock
    from ragd.store.types import VectorRow

    state = Path(sys.argv[1])
    lock = StateLock(state)
    lock.acquire()
    index = ChromaIndex(state / "chroma", lock_fd=lock.fileno())
    index.create("generation-1", 16)
    print("child", index.pid, flush=True)
    vectors = np.random.default_rng(0).normal(size=(50, 16)).astype(np.float32)
    for batch in range(10_000):
        rows = [VectorRow(f"{batch}-{n}", vector, {"b": batch}) for n, vector in enumerate(vectors)]
        index.upsert("generation-1", rows)
        print("acked", batch, flush=True)
    """
)


class Writer:
    """A process that holds the lock and writes batches of 50 rows through a Chroma child until it is
    killed."""

    def __init__(self, state: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(state)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self._lines = self.process.stdout
        self.child_pid = int(self._lines.readline().split()[1])
        self.acked = 0

    def write_until(self, batches: int) -> None:
        while self.acked < batches:
            assert self._lines.readline().startswith("acked")
            self.acked += 1

    def killed(self) -> None:
        """Kill the daemon (not the child) and count what it still said."""
        self.process.kill()
        output, errors = self.process.communicate()
        self.acked += output.count("acked")
        assert errors == ""


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def find_everything(state: Path, acked: int) -> None:
    """All acknowledged batches are there whole, with vectors; the one in flight is there whole or not at
    all."""
    lock = StateLock(state)
    lock.acquire(wait_s=20.0)
    with lock:
        index = ChromaIndex(state / "chroma", lock_fd=lock.fileno())
        count = index.count(NAME)
        assert count in (acked * 50, (acked + 1) * 50)
        assert index.check(NAME, count, vectors=True) == []
        assert {row_id.split("-")[0] for row_id in index.ids(NAME)} == {str(n) for n in range(count // 50)}
        index.close()


@chroma
@pytest.mark.process
def test_killed_daemon_the_child_finishes_its_write_and_ends(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write_until(25)
    writer.killed()
    wait_until(lambda: gone(writer.child_pid))
    assert health.stopped_cleanly(tmp_path / "chroma")
    find_everything(tmp_path, writer.acked)


@chroma
@pytest.mark.process
def test_killed_daemon_the_lock_is_held_until_its_child_is_gone(tmp_path: Path) -> None:
    """Never two Chroma processes on one folder (FAULTS D1)."""
    writer = Writer(tmp_path)
    writer.write_until(3)
    os.kill(writer.child_pid, signal.SIGSTOP)
    writer.killed()
    try:
        with pytest.raises(LockedError):
            StateLock(tmp_path).acquire(wait_s=0.3)
    finally:
        os.kill(writer.child_pid, signal.SIGCONT)
    lock = StateLock(tmp_path)
    lock.acquire(wait_s=20.0)
    assert gone(writer.child_pid)
    lock.release()
    find_everything(tmp_path, writer.acked)


@chroma
@pytest.mark.process
def test_killed_both_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write_until(10)
    os.kill(writer.child_pid, signal.SIGSTOP)  # or the daemon would start another child before it dies
    writer.killed()
    os.kill(writer.child_pid, signal.SIGKILL)
    wait_until(lambda: gone(writer.child_pid))
    assert not health.stopped_cleanly(tmp_path / "chroma")
    find_everything(tmp_path, writer.acked)


@chroma
@pytest.mark.process
def test_killed_child_the_daemon_goes_on(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.write_until(10)
    os.kill(writer.child_pid, signal.SIGKILL)
    writer.write_until(writer.acked + 10)
    writer.killed()
    find_everything(tmp_path, writer.acked)


# --- turns
# ---------------------------------------------------------------------------------------------------


class SlowProcess(ChromaProcess):
    """Answers everything after a while, and remembers in which order."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, lock_fd=None, documents=False)
        self.order: list[tuple[str, int]] = []
        self.max_batch = 5461

    def ask(self, request: Request) -> Answer:
        time.sleep(0.01)
        self.order.append((request.operation, len(request.ids)))
        return Answer(0)


def test_a_query_waits_for_one_small_batch_at_most(tmp_path: Path) -> None:
    process = SlowProcess(tmp_path)
    index = ChromaIndex(tmp_path, process=process)
    writer = threading.Thread(target=index.upsert, args=(NAME, rows(1000)))
    writer.start()
    wait_until(lambda: len(process.order) >= 2)
    before = len(process.order)
    index.query(NAME, np.zeros(DIMENSION, np.float32), 5)
    writer.join()
    place = [operation for operation, _ in process.order].index("query")
    assert place - before <= 1
    assert process.order[0] == ("upsert", BATCH_ROWS)
    assert {size for operation, size in process.order[place + 1 : -1] if operation == "upsert"} == {BUSY_BATCH_ROWS}
    assert sum(size for _, size in process.order) == 1000


def test_a_question_never_sees_half_of_an_answer_meant_for_another(tmp_path: Path) -> None:
    """Requests of many threads go one at a time."""
    inside: list[int] = []
    most: list[int] = []

    class Watched(SlowProcess):
        def ask(self, request: Request) -> Answer:
            inside.append(1)
            most.append(len(inside))
            answer = super().ask(request)
            inside.pop()
            return answer

    index = ChromaIndex(tmp_path, process=Watched(tmp_path))
    calls: list[Callable[[], Any]] = [lambda: index.upsert(NAME, rows(100)), lambda: index.count(NAME)]
    threads = [threading.Thread(target=calls[n % 2]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
