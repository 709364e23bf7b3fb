"""The lock on the state folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from ragd.store.errors import LockedError, StoreError
from ragd.store.lock import LOCK_NAME, StateLock

HOLDER = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from ragd.store.lock import StateLock
    lock = StateLock(Path(sys.argv[1]))
    lock.acquire()
    print("held", flush=True)
    time.sleep(60)
    """
)


def start_holder(folder: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_the_folder_is_made_private_and_the_lock_is_taken_once(tmp_path: Path) -> None:
    state = tmp_path / "a" / "state"
    with StateLock(state) as lock:
        lock.acquire()
        assert state.stat().st_mode & 0o777 == 0o700
        assert (state / LOCK_NAME).stat().st_mode & 0o777 == 0o600
        with pytest.raises(LockedError, match=f"process that wrote {os.getpid()}"):
            StateLock(state).acquire()
    assert not lock.held
    lock.release()
    with StateLock(state):
        pass


def test_a_folder_others_can_read_is_closed_to_them(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o755)
    with StateLock(state):
        assert state.stat().st_mode & 0o777 == 0o700


@pytest.mark.process
def test_fault_f12_a_killed_holder_leaves_nothing_stale(tmp_path: Path) -> None:
    holder = start_holder(tmp_path)
    try:
        with pytest.raises(LockedError, match=str(holder.pid)):
            StateLock(tmp_path).acquire()
    finally:
        end(holder)
    with StateLock(tmp_path) as lock:
        assert lock.held


@pytest.mark.process
def test_fault_f12_the_number_in_the_file_of_a_live_process_blocks_nobody(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text(f"{os.getppid()}\n")
    with StateLock(tmp_path) as lock:
        assert lock.held
    assert (tmp_path / LOCK_NAME).read_text() == f"{os.getpid()}\n"


@pytest.mark.process
def test_fault_f12_of_two_started_at_once_exactly_one_holds(tmp_path: Path) -> None:
    script = HOLDER.replace('print("held", flush=True)', 'print("held", flush=True); sys.stdin.read()')
    both = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    deadline = time.monotonic() + 30
    while all(process.poll() is None for process in both) and time.monotonic() < deadline:
        time.sleep(0.02)
    ended = [process for process in both if process.poll() is not None]
    assert len(ended) == 1
    _, errors = ended[0].communicate()
    assert "LockedError" in errors
    end(next(process for process in both if process is not ended[0]))


def test_waiting_tries_until_the_time_is_up(tmp_path: Path) -> None:
    now = [0.0]
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    with StateLock(tmp_path), pytest.raises(LockedError):
        StateLock(tmp_path, clock=lambda: now[0], sleep=sleep).acquire(wait_s=1.0)
    assert sum(pauses) == pytest.approx(1.0, abs=0.1)


def test_waiting_ends_when_the_holder_lets_go(tmp_path: Path) -> None:
    first = StateLock(tmp_path)
    first.acquire()
    second = StateLock(tmp_path, sleep=lambda _: first.release())
    second.acquire(wait_s=10.0)
    assert second.held
    second.release()


@pytest.mark.process
def test_another_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = StateLock(tmp_path)
    lock.acquire()
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
    try:
        lock.release()
        again = StateLock(tmp_path)
        again.acquire(10)  # the descriptor is gone when the child's program begins, a moment after the call returned
        assert again.held
        again.release()
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


@pytest.mark.process
def test_a_child_that_was_given_the_descriptor_holds_the_lock_until_it_ends(tmp_path: Path) -> None:
    lock = StateLock(tmp_path)
    lock.acquire()
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=[lock.fileno()])
    try:
        lock.release()
        with pytest.raises(LockedError):
            StateLock(tmp_path).acquire()
    finally:
        child.kill()
        child.wait()
    with StateLock(tmp_path) as again:
        assert again.held


def test_a_link_in_place_of_the_lock_file_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("keep me")
    state = tmp_path / "state"
    state.mkdir()
    (state / LOCK_NAME).symlink_to(target)
    with pytest.raises(StoreError, match="cannot be used"):
        StateLock(state).acquire()
    assert target.read_text() == "keep me"


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be used"):
        StateLock(tmp_path / "file" / "state").acquire()


def test_the_descriptor_of_a_lock_not_held_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not held"):
        StateLock(tmp_path).fileno()
