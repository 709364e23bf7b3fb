"""Reading a file safely: what is never opened, what never leaves the root, what is never half of two versions."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ragd.daemon.files import read as read_module
from ragd.daemon.files.read import FileBytes, NotRead, read_file
from ragd.daemon.files.roots import RootRules, arrange
from ragd.daemon.files.walk import DATALESS_FLAG

LIMIT = 1000


def root(top: Path, **given: object) -> RootRules:
    return arrange([RootRules("r", os.fsencode(top), **given)])[0]  # type: ignore[arg-type]


def refused(made: RootRules, path: bytes) -> NotRead:
    answer = read_file(made, path, LIMIT)
    assert isinstance(answer, NotRead)
    return answer


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.md").write_bytes(b"text\n")
    return folder


def test_bytes_and_the_stat_that_belongs_to_them(top: Path) -> None:
    answer = read_file(root(top), b"sub/a.md", LIMIT)
    assert isinstance(answer, FileBytes)
    assert answer.data == b"text\n"
    assert answer.stat.inode == (top / "sub" / "a.md").stat().st_ino
    assert answer.stat.size == 5


def test_a_linked_root_is_read_and_an_empty_file_too(top: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(top)
    (top / "empty.md").touch()
    answer = read_file(root(tmp_path / "link"), b"sub/a.md", LIMIT)
    assert isinstance(answer, FileBytes)
    empty = read_file(root(top), b"empty.md", LIMIT)
    assert isinstance(empty, FileBytes)
    assert empty.data == b""


@pytest.mark.parametrize("path", [b"../x", b"sub/../../x", b"/etc/passwd", b"", b"sub//a.md", b"./sub", b"a\0b"])
def test_paths_that_are_none(top: Path, path: bytes) -> None:
    assert refused(root(top), path).code == "outside_root"


def test_links_are_not_followed_wherever_they_stand(top: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b.md").write_text("secret")
    (top / "link.md").symlink_to(tmp_path / "outside" / "b.md")
    (top / "folder").symlink_to(tmp_path / "outside")
    (top / "inner").symlink_to("sub")
    (top / "dangling.md").symlink_to("nowhere")
    assert refused(root(top), b"link.md").code == "not_regular"
    assert refused(root(top), b"folder/b.md").code == "outside_root"
    assert refused(root(top), b"inner/a.md").code == "outside_root"
    assert refused(root(top), b"dangling.md").code == "not_regular"


def test_followed_links_stay_inside_the_roots(top: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.md").write_text("b")
    (tmp_path / "outside.md").write_text("secret")
    (top / "in.md").symlink_to(other / "b.md")
    (top / "folder").symlink_to(other)
    (top / "out.md").symlink_to(tmp_path / "outside.md")
    first, _ = arrange([RootRules("r", os.fsencode(top), follow_symlinks=True), RootRules("o", os.fsencode(other))])
    for path in (b"in.md", b"folder/b.md", b"sub/a.md"):
        assert isinstance(read_file(first, path, LIMIT), FileBytes), path
    assert refused(first, b"out.md").code == "outside_root"
    assert refused(first, b"missing.md").code == "gone"


def test_a_folder_swapped_for_a_link_at_the_last_moment(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("secret")
    real = os.open

    def swapping(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == b"sub":
            (top / "sub").rename(top / "old")
            (top / "sub").symlink_to(tmp_path / "outside")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swapping)
    assert refused(root(top), b"sub/a.md").code == "outside_root"


def test_pipes_sockets_devices_and_folders_are_not_opened(top: Path) -> None:
    os.mkfifo(top / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(top / "sock"))
        assert refused(root(top), b"pipe").detail == "pipe"
        assert refused(root(top), b"sock").detail == "socket"
        assert refused(root(top), b"sub").detail == "folder"
    assert {refused(root(top), name).code for name in (b"pipe", b"sock", b"sub")} == {"not_regular"}
    assert refused(root(Path("/dev")), b"null").detail == "device"


def test_too_large_is_seen_before_opening(top: Path) -> None:
    (top / "big.md").write_bytes(b"x" * (LIMIT + 1))
    answer = refused(root(top), b"big.md")
    assert (answer.code, answer.detail) == ("too_large", "1001 bytes")
    assert answer.stat is not None
    (top / "fits.md").write_bytes(b"x" * LIMIT)
    assert isinstance(read_file(root(top), b"fits.md", LIMIT), FileBytes)


def test_fault_b18_a_file_in_the_cloud_is_never_opened(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_stat, real_open = os.stat, os.open
    opened: list[object] = []

    def stat(path: Any, **given: Any) -> Any:
        status = real_stat(path, **given)
        if path != b"a.md":
            return status
        fields = {name: getattr(status, name) for name in dir(status) if name.startswith("st_")}
        return SimpleNamespace(**fields, st_flags=DATALESS_FLAG)

    def note(path: Any, *rest: Any, **given: Any) -> int:
        opened.append(path)
        return real_open(path, *rest, **given)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os, "open", note)
    answer = refused(root(top), b"sub/a.md")
    assert (answer.code, answer.detail) == ("not_local", "5 bytes, in the cloud")
    assert b"a.md" not in opened


@pytest.mark.parametrize("change", ["append", "truncate", "rewrite"])
def test_a_file_that_changes_while_it_is_read_is_unstable(
    top: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    real = read_module._read_all

    def changing(descriptor: int, size: int) -> bytes:
        data = real(descriptor, size)
        path = top / "sub" / "a.md"
        if change == "append":
            path.write_bytes(b"text\nmore")
        elif change == "truncate":
            path.write_bytes(b"")
        else:
            path.write_bytes(b"TEXT\n")
            os.utime(path, ns=(1, 1))
        return data

    monkeypatch.setattr(read_module, "_read_all", changing)
    answer = refused(root(top), b"sub/a.md")
    assert answer.code == "unstable"
    assert answer.may_pass


def test_a_growing_log_is_taken_as_it_was_opened_when_asked_for(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = read_module._read_all

    def growing(descriptor: int, size: int) -> bytes:
        with (top / "sub" / "a.md").open("ab") as file:
            file.write(b"more")
        return real(descriptor, size)

    monkeypatch.setattr(read_module, "_read_all", growing)
    answer = read_file(root(top), b"sub/a.md", LIMIT, accept_growing=True)
    assert isinstance(answer, FileBytes)
    assert (answer.data, answer.stat.size) == (b"text\n", 5)


def test_a_file_replaced_between_stat_and_open_is_unstable(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (top / "other").write_bytes(b"other")
    real = os.open

    def replacing(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == b"a.md":
            (top / "other").replace(top / "sub" / "a.md")
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", replacing)
    assert refused(root(top), b"sub/a.md").code == "unstable"


@pytest.mark.parametrize(
    ("number", "code", "may_pass"),
    [
        (errno.EACCES, "unreadable", False),
        (errno.EIO, "unreadable", True),
        (errno.ESTALE, "unreadable", True),
        (errno.EMFILE, "unreadable", True),
        (errno.ENOENT, "gone", False),
    ],
)
def test_fault_f6_errors_become_outcomes(
    top: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: str, may_pass: bool
) -> None:
    real = os.open

    def broken(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == b"a.md":
            raise OSError(number, os.strerror(number))
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", broken)
    answer = refused(root(top), b"sub/a.md")
    assert (answer.code, answer.may_pass) == (code, may_pass)


def test_gone_files_folders_and_roots(top: Path, tmp_path: Path) -> None:
    assert refused(root(top), b"sub/b.md").code == "gone"
    assert refused(root(top), b"sub/a.md/b.md").code == "gone"
    assert refused(root(tmp_path / "missing"), b"a.md").code == "gone"


def test_no_descriptor_is_left_open(top: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    (top / "link.md").symlink_to("sub/a.md")
    for path in (b"sub/a.md", b"link.md", b"sub/missing", b"sub/a.md/x", b"../x", b"sub"):
        read_file(root(top), path, LIMIT)
        read_file(root(top), path, 1)
    assert len(os.listdir("/proc/self/fd")) == before


def test_where_folders_cannot_be_opened_the_real_path_is_compared(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_module, "_STEPWISE", False)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "b.md").write_text("secret")
    (top / "folder").symlink_to(tmp_path / "outside")
    assert isinstance(read_file(root(top), b"sub/a.md", LIMIT), FileBytes)
    assert refused(root(top), b"folder/b.md").code == "outside_root"
