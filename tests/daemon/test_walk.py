"""Walking real folders: what is seen, in which order, and what is not known afterwards (faults C11, F5, B18)."""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragd.daemon.files.ignore import IgnoreRules
from ragd.daemon.files.roots import RootRules, arrange
from ragd.daemon.files.walk import DATALESS_FLAG, Walk, is_local


def make(top: Path, *names: str) -> None:
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("text")


def rules(top: Path, **given: object) -> IgnoreRules:
    return IgnoreRules(arrange([RootRules("r", os.fsencode(top), **given)])[0])  # type: ignore[arg-type]


def found(walk: Walk) -> list[str]:
    return [os.fsdecode(seen.path) for seen in walk]


def failing(place: bytes, error: OSError, after: int = 0) -> object:
    """os.scandir that fails in one folder, at once or after some entries."""

    class Entries:
        def __init__(self, folder: bytes) -> None:
            self._folder = folder
            self._entries = os.scandir(folder)

        def __enter__(self) -> Iterator[os.DirEntry[bytes]]:
            return self._read()

        def __exit__(self, *_: object) -> None:
            self._entries.close()

        def _read(self) -> Iterator[os.DirEntry[bytes]]:
            for number, entry in enumerate(self._entries):
                if self._folder == place and number >= after:
                    raise error
                yield entry
            if self._folder == place:
                raise error

    def scandir(folder: bytes) -> AbstractContextManager[Iterator[os.DirEntry[bytes]]]:
        return Entries(folder)

    return scandir


def test_every_file_is_seen_once_with_its_stat(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "b/c.md", "b/d/e.md")
    walk = Walk(rules(tmp_path))
    seen = list(walk)
    assert [entry.path for entry in seen] == [b"a.md", b"b/c.md", b"b/d/e.md"]
    assert walk.seen == 3
    status = (tmp_path / "b" / "c.md").stat()
    stat = seen[1].stat
    assert (stat.size, stat.mtime_ns, stat.ctime_ns) == (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    assert (stat.inode, stat.device) == (status.st_ino, status.st_dev)
    assert walk.folders == [b"", b"b", b"b/d"]


@given(
    names=st.lists(
        st.lists(st.sampled_from(["a", "a.md", "a-b", "a0", "b", "A", "é"]), min_size=1, max_size=3).map("/".join),
        max_size=12,
    )
)
def test_law_the_order_is_that_of_the_paths_bytes(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    top = tmp_path_factory.mktemp("tree")
    for name in names:
        try:
            make(top, name)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    paths = [seen.path for seen in Walk(rules(top))]
    assert paths == sorted(paths)
    assert len(paths) == sum(len(files) for _, _, files in os.walk(top))


def test_a_scope_is_a_file_a_folder_or_nothing(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "b/c.md", "b/d/e.md", "bb/f.md")
    assert found(Walk(rules(tmp_path), (b"b",))) == ["b/c.md", "b/d/e.md"]
    assert found(Walk(rules(tmp_path), (b"b/d/e.md", b"a.md"))) == ["a.md", "b/d/e.md"]
    assert found(Walk(rules(tmp_path), (b"b", b"b/d", b"b/d/e.md"))) == ["b/c.md", "b/d/e.md"]
    gone = Walk(rules(tmp_path), (b"x/y", b"a.md/z"))
    assert found(gone) == []
    assert gone.unread == {}
    assert gone.covers(b"x/y")
    assert gone.covers(b"x/y/deep")
    assert not gone.covers(b"x/other")


def test_a_scope_in_an_ignored_folder_sees_nothing(tmp_path: Path) -> None:
    make(tmp_path, "node_modules/a/b.md", "x/a.tmp")
    (tmp_path / ".gitignore").write_text("x/\n")
    for place in (b"node_modules/a/b.md", b"node_modules/a", b"node_modules", b"x/a.tmp", b"x"):
        walk = Walk(rules(tmp_path), (place,))
        assert found(walk) == []
        assert walk.ignored == 1


def test_fault_c11_links_are_not_followed_and_loops_end(tmp_path: Path) -> None:
    top = tmp_path / "root"
    make(top, "a.md", "sub/b.md")
    (tmp_path / "outside.md").write_text("zqx")
    (top / "loop").symlink_to(top)
    (top / "sub" / "up").symlink_to("..")
    (top / "out.md").symlink_to(tmp_path / "outside.md")
    (top / "one").symlink_to(top / "sub")
    walk = Walk(rules(top))
    assert found(walk) == ["a.md", "sub/b.md"]
    assert walk.not_regular == 4
    assert found(Walk(rules(top), (b"loop/a.md",))) == []
    following = Walk(rules(top, follow_symlinks=True))
    assert found(following) == ["a.md", "sub/b.md"]


def test_followed_links_lead_into_other_roots_only_and_one_step(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    make(one, "a.md")
    make(two, "notes/b.md", ".ssh/c.md", "d.md")
    make(tmp_path, "outside/e.md")
    (one / "notes").symlink_to(two / "notes")
    (one / "again").symlink_to(two / "notes")
    (one / "file.md").symlink_to(two / "d.md")
    (one / "keys").symlink_to(two / ".ssh")
    (one / "env.md").symlink_to(two / ".env")
    (one / "outside").symlink_to(tmp_path / "outside")
    (two / "notes" / "loop").symlink_to(two)
    (two / "notes" / "back").symlink_to(one)
    (two / ".env").write_text("SECRET=1")
    first, _ = arrange([RootRules("one", os.fsencode(one), follow_symlinks=True), RootRules("two", os.fsencode(two))])
    expected = ["a.md", "again/b.md", "file.md", "notes/b.md"]
    assert found(Walk(IgnoreRules(first))) == expected
    assert found(Walk(IgnoreRules(first), (b"notes/b.md",))) == ["notes/b.md"]
    assert found(Walk(IgnoreRules(first), (b"notes",))) == ["notes/b.md"]
    assert found(Walk(IgnoreRules(first), (b"notes/loop/notes/b.md",))) == []


def test_a_root_may_be_a_symbolic_link(tmp_path: Path) -> None:
    make(tmp_path / "real", "a.md")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert found(Walk(rules(tmp_path / "link"))) == ["a.md"]


def test_pipes_sockets_and_devices_are_no_files(tmp_path: Path) -> None:
    make(tmp_path, "a.md")
    os.mkfifo(tmp_path / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s.md"))
        walk = Walk(rules(tmp_path))
        assert found(walk) == ["a.md"]
        assert walk.not_regular == 2
        single = Walk(rules(tmp_path), (b"pipe.md",))
        assert found(single) == []
        assert single.not_regular == 1


def test_fault_f5_an_unreadable_folder_is_unknown_and_not_empty(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "shut/b.md", "shut/deep/c.md", "z.md")
    shut = os.fsencode(tmp_path / "shut")
    for error in (PermissionError(errno.EACCES, "Permission denied"), OSError(errno.EIO, "Input/output error")):
        walk = Walk(rules(tmp_path), scandir=failing(shut, error))  # type: ignore[arg-type]
        assert found(walk) == ["a.md", "z.md"]
        assert walk.unread == {b"shut": error.strerror}
        assert not walk.covers(b"shut/b.md")
        assert not walk.covers(b"shut/deep/c.md")
        assert walk.covers(b"gone.md")


def test_fault_f5_a_listing_that_fails_half_way_is_unknown(tmp_path: Path) -> None:
    make(tmp_path, *(f"half/{number}.md" for number in range(6)))
    half = os.fsencode(tmp_path / "half")
    walk = Walk(rules(tmp_path), scandir=failing(half, OSError(errno.EIO, "Input/output error"), after=3))  # type: ignore[arg-type]
    assert found(walk) == []
    assert not walk.covers(b"half/5.md")


def test_a_missing_root_is_unknown_and_a_vanished_folder_is_gone(tmp_path: Path) -> None:
    walk = Walk(rules(tmp_path / "missing"))
    assert found(walk) == []
    assert not walk.covers(b"a.md")
    make(tmp_path, "sub/a.md")
    sub = os.fsencode(tmp_path / "sub")
    vanished = Walk(rules(tmp_path), scandir=failing(sub, FileNotFoundError(errno.ENOENT, "gone")))  # type: ignore[arg-type]
    assert found(vanished) == []
    assert vanished.covers(b"sub/a.md")


def test_a_file_that_vanishes_between_listing_and_stat_is_no_error(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "b.md", "c.md")
    names = []
    for seen in Walk(rules(tmp_path)):
        names.append(seen.path)
        (tmp_path / "b.md").unlink(missing_ok=True)
    assert names == [b"a.md", b"c.md"]


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/f\xff"
    Path(os.fsdecode(folder)).mkdir()
    with open(folder + b"/\xfe.md", "wb") as file:
        file.write(b"x")
    assert [seen.path for seen in Walk(rules(tmp_path))] == [b"f\xff/\xfe.md"]


def test_fault_b18_a_file_in_the_cloud_is_seen_as_not_local() -> None:
    assert not is_local(cast(os.stat_result, SimpleNamespace(st_flags=DATALESS_FLAG)))
    assert is_local(cast(os.stat_result, SimpleNamespace(st_flags=0)))
    if sys.platform == "linux":
        assert is_local(os.stat("."))


def test_one_stat_a_file_and_no_folder_listed_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, *(f"d{number % 7}/{number}.md" for number in range(70)))
    listed: list[bytes] = []
    opened: list[bytes] = []
    real_scandir, real_open = os.scandir, os.open

    def scandir(folder: bytes) -> AbstractContextManager[Iterator[os.DirEntry[bytes]]]:
        listed.append(folder)
        return real_scandir(folder)

    monkeypatch.setattr(
        os, "open", lambda path, *rest, **more: (opened.append(path), real_open(path, *rest, **more))[1]
    )
    walk = Walk(rules(tmp_path), scandir=scandir)
    assert len(list(walk)) == walk.seen == 70
    assert sorted(listed) == sorted(set(listed))
    assert len(listed) == 8
    assert not [path for path in opened if path.endswith(b".md")]
