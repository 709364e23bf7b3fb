"""Saves as programs make them, bursts of them, and rest: the real daemon with the hash embedder."""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from process_kit import cpu_seconds, wait_for
from ragd_kit import Ragd
from site_kit import Site
from truth_kit import assert_catalog_is_true, held_by_catalog

pytestmark = [pytest.mark.process, pytest.mark.chroma]

SETTLE_S = 30.0
"""For a machine that is busy with other things; the debounce is 0.3 s."""


@pytest.fixture
def site(ragd: Ragd, tmp_path: Path) -> Site:
    made = Site(tmp_path / "site")
    ragd.env["PYTHONPATH"] = str(made.folder)
    return made


# --- C1


def save_by_rename(path: Path, text: str, outside: Path) -> None:
    del outside
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(text)
    os.replace(beside, path)


def save_by_rename_from_outside(path: Path, text: str, outside: Path) -> None:
    beside = outside / "a.md.tmp"
    beside.write_text(text)
    os.replace(beside, path)


def save_like_vim(path: Path, text: str, outside: Path) -> None:
    del outside
    backup = path.with_name(f"{path.name}~")
    os.rename(path, backup)
    path.write_text(text)
    backup.unlink()


def save_in_place(path: Path, text: str, outside: Path) -> None:
    del outside
    path.write_text(text)


def save_like_emacs(path: Path, text: str, outside: Path) -> None:
    del outside
    lock, autosave = path.with_name(f".#{path.name}"), path.with_name(f"#{path.name}#")
    lock.symlink_to("me@host.1:2")
    autosave.write_text("half of it")
    backup = path.with_name(f"{path.name}~")
    backup.write_bytes(path.read_bytes())
    path.write_text(text)
    autosave.unlink()
    backup.unlink()
    lock.unlink()


def save_like_jetbrains(path: Path, text: str, outside: Path) -> None:
    del outside
    new, old = path.with_name(f"{path.name}___jb_tmp___"), path.with_name(f"{path.name}___jb_old___")
    new.write_text(text)
    os.rename(path, old)
    os.rename(new, path)
    old.unlink()


def save_with_equal_size_and_time(path: Path, text: str, outside: Path) -> None:
    """As an archive that keeps times is unpacked over it."""
    stat, beside = path.stat(), outside / "a.md.tmp"
    beside.write_text(text.ljust(stat.st_size)[: stat.st_size])
    os.utime(beside, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    os.replace(beside, path)


def save_by_exchange(path: Path, text: str, outside: Path) -> None:
    """Two names change places in one call, as some programs of macOS and Linux do it."""
    beside = outside / "a.md.tmp"
    beside.write_text(text)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_HERE, os.fsencode(beside), _HERE, os.fsencode(path), _EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    beside.unlink()


_HERE, _EXCHANGE = -100, 2

SAVES = (
    save_by_rename,
    save_by_rename_from_outside,
    save_like_vim,
    save_in_place,
    save_like_emacs,
    save_like_jetbrains,
    save_with_equal_size_and_time,
    save_by_exchange,
)


@pytest.mark.timeout(180)
def test_fault_c1_every_way_to_save_is_seen_and_costs_one_pass(ragd: Ragd, site: Site) -> None:
    path, outside = ragd.docs / "a.md", ragd.base
    path.write_text("# A\n\nold zqold stands here.\n")
    (ragd.docs / "b.md").write_text("# B\n\nanother zqb stands here.\n")
    ragd.start()
    ragd.wait_idle()
    old = "zqold"
    for number, save in enumerate(SAVES):
        new, before = f"zqnew{number}", len(site.batches())
        assert [hit["rel"] for hit in ragd.search(old, "lexical")] == ["a.md"]
        save(path, f"# A\n\nnew {new} stands here.\n", outside)
        seconds = _until_found(ragd, new)
        print(f"\n{save.__name__}: found after {seconds:.2f} s", end="")
        assert ragd.search(old, "lexical") == [], save.__name__
        assert ragd.search(f"A old {old} stands here", "dense", k=1)[0]["text"] != f"old {old} stands here."
        ragd.wait_idle()  # a whole walk finds nothing more to do
        embedded = [texts for _, texts in site.batches()[before:]]
        assert len(embedded) == 1, save.__name__
        assert len(embedded[0]) == 1, save.__name__
        assert held_by_catalog(ragd.state).files.keys() == {b"a.md", b"b.md"}, save.__name__
        old = new
    assert_catalog_is_true(ragd.config_file, ragd.state)
    assert ragd.daemon.stop() == 0


def _until_found(ragd: Ragd, word: str) -> float:
    began = time.monotonic()
    wait_for(f"{word} is found", lambda: ragd.search(word, "lexical"), SETTLE_S)
    return time.monotonic() - began


# --- C2


@pytest.mark.timeout(600)
def test_fault_c2_no_file_is_lost_when_the_kernel_drops_events(ragd: Ragd) -> None:
    """6,000 files while the daemon cannot read its events: more than the kernel keeps."""
    files = 6_000
    kept = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    ragd.start()
    ragd.wait_idle()
    ragd.daemon.process.send_signal(signal.SIGSTOP)
    for number in range(files):
        # written, closed and written again, so that each file is several events
        path = ragd.docs / f"n{number}.md"
        for text in ("draft\n", "draft two\n", f"# N\n\nzqn{number}z stands here.\n")[-_saves(files, kept) :]:
            path.write_text(text)
    ragd.daemon.process.send_signal(signal.SIGCONT)
    began = time.monotonic()
    # nobody asks for a walk: the daemon has to notice by itself
    wait_for("all files are indexed", lambda: ragd.status()["roots"][0]["files"] == files, 480, poll_s=0.2)
    print(f"\n{files} files after {time.monotonic() - began:.0f} s")
    status = ragd.status()
    assert status["last_rescan_reason"] == "overflow"
    assert assert_catalog_is_true(ragd.config_file, ragd.state).files.keys() == {
        f"n{number}.md".encode() for number in range(files)
    }
    assert [hit["rel"] for hit in ragd.search(f"zqn{files - 1}z", "lexical")] == [f"n{files - 1}.md"]
    assert ragd.daemon.stop() == 0


def _saves(files: int, kept: int) -> int:
    """So many saves a file that their events (at least two a save) are more than the kernel keeps."""
    needed = kept // (2 * files) + 1
    if needed > 3:
        pytest.skip(f"the kernel keeps {kept} events here")
    return needed


# --- C9


@pytest.mark.timeout(240)
def test_fault_c9_nothing_happens_while_nothing_changes(ragd: Ragd, site: Site) -> None:
    """500 files, the state folder and the daemon's log among them in the root."""
    ragd.state, ragd.logs = ragd.docs / "ragd-state", ragd.docs
    ragd.configure()
    for number in range(500):
        folder = ragd.docs / f"d{number % 10}"
        folder.mkdir(exist_ok=True)
        (folder / f"f{number}.md").write_text(f"# F\n\nzqf{number}z stands here.\n")
    ragd.start()
    ragd.wait_idle()
    held = held_by_catalog(ragd.state)
    assert not any(path.startswith((b"ragd-state", b"std")) for path in held.files)
    assert len(held.files) == 500
    time_of_walk, texts = ragd.status()["last_walk"], site.texts()
    assert texts == 500
    pids = ragd.processes()
    with listings(sorted(path for path in ragd.docs.rglob("*") if path.is_dir())) as listed:
        rest_s = 6.0
        used = sum(map(cpu_seconds, pids))
        end = time.monotonic() + rest_s
        while time.monotonic() < end:
            assert listed() == []
            time.sleep(0.5)
        used = sum(map(cpu_seconds, pids)) - used
    print(f"\n{rest_s:.0f} s of rest: {used:.2f} s of processor time in {len(pids)} processes")
    assert site.texts() == texts
    assert ragd.status()["last_walk"] == time_of_walk
    assert used < rest_s / 60 + 0.15, "more than a second a minute (and what asking for this took)"
    assert ragd.daemon.stop() == 0


_IN_OPEN, _IN_ISDIR, _IN_NONBLOCK = 0x20, 0x40000000, 0o4000


@contextmanager
def listings(folders: list[Path]) -> Iterator[object]:
    """Notes which of the folders are opened, as a walk does, by anybody: call it for those since the last call."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(_IN_NONBLOCK)
    assert descriptor >= 0, os.strerror(ctypes.get_errno())
    watched = {libc.inotify_add_watch(descriptor, os.fsencode(folder), _IN_OPEN): folder for folder in folders}
    assert -1 not in watched

    def listed() -> list[Path]:
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return []
        found, place = [], 0
        while place < len(data):
            watch, mask, _, length = struct.unpack_from("iIII", data, place)
            place += 16 + length
            if mask & _IN_ISDIR:
                found.append(watched[watch])
        return found

    try:
        yield listed
    finally:
        os.close(descriptor)
