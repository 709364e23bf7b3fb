"""Paths, roots and mounts: who owns a file, and when what is absent may be believed to be gone (faults F5, C13)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragd.daemon.files import paths
from ragd.daemon.files.mounts import filesystem_type, gives_events
from ragd.daemon.files.roots import RootRules, arrange, check_root, owner

PATHS = st.lists(st.sampled_from([b"a", b"b", b"ab", b"a.b"]), min_size=1, max_size=4).map(b"/".join)


def test_bytes_that_are_not_utf8_are_shown_escaped() -> None:
    assert paths.show(b"caf\xc3\xa9/\xff.md") == "café/\\xff.md"
    assert paths.encode_raw(b"\xff") == "/w=="
    assert paths.is_exact(b"caf\xc3\xa9")
    assert not paths.is_exact(b"\xff")


@given(st.lists(PATHS, max_size=8))
def test_law_outermost_places_cover_all_and_none_lies_below_another(places: list[bytes]) -> None:
    chosen = paths.outermost(places)
    assert all(any(paths.is_under(place, top) for top in chosen) for place in places)
    assert all(one == other or not paths.is_under(one, other) for one in chosen for other in chosen)
    assert list(chosen) == sorted(chosen)
    assert paths.outermost([*places, b""]) == (b"",)


def test_fault_c13_a_name_is_spelled_as_on_disk() -> None:
    composed, decomposed = "é.md".encode(), "e\u0301.md".encode()
    assert paths.same_name(b"readme.md", [b"README.md", b"a"]) == b"README.md"
    assert paths.same_name(composed, [decomposed]) == decomposed
    assert paths.same_name(b"readme.md", [b"README.md", b"readme.md"]) == b"readme.md"
    assert paths.same_name(b"other", [b"README.md"]) == b"other"


def test_the_innermost_root_owns_a_file(tmp_path: Path) -> None:
    (tmp_path / "outer" / "inner" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "outer" / "inner")
    top = os.fsencode(tmp_path)
    roots = arrange([RootRules("outer", top + b"/outer"), RootRules("inner", top + b"/outer/inner")])
    assert roots[0].inner == (b"inner",)
    assert roots[1].inner == ()

    def owned(path: bytes) -> tuple[str, bytes] | None:
        found = owner(top + path, roots)
        return None if found is None else (found[0].name, found[1])

    assert owned(b"/outer/a.md") == ("outer", b"a.md")
    assert owned(b"/outer/inner/a.md") == ("inner", b"a.md")
    assert owned(b"/outer/inner") == ("inner", b"")
    assert owned(b"/link/deep/a.md") == ("inner", b"deep/a.md")
    assert owned(b"/outer2/a.md") is None


def test_a_root_given_as_a_link_knows_the_roots_inside_it(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    top = os.fsencode(tmp_path)
    roots = arrange([RootRules("a", top + b"/link"), RootRules("b", top + b"/real/inner")], [top + b"/real/state"])
    assert (roots[0].inner, roots[0].kept_out) == ((b"inner",), (b"state",))


def test_fault_f5_a_missing_root_a_file_and_an_unreadable_one_are_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = os.fsencode(tmp_path / "root")
    assert check_root(top).reason == "missing"
    (tmp_path / "root").touch()
    assert check_root(top).reason == "not_a_directory"
    (tmp_path / "root").unlink()
    (tmp_path / "root").mkdir()
    health = check_root(top, has_files=False)
    assert health.ok
    assert health.identity is not None

    def refused(_: bytes) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refused)
    assert (check_root(top).state, check_root(top).reason) == ("unavailable", "unreadable")


def test_fault_f5_an_empty_mount_point_is_not_an_emptied_folder(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.md").touch()
    top = os.fsencode(root)
    known = check_root(top).identity
    root.rename(tmp_path / "away")
    root.mkdir()
    assert check_root(top, known, has_files=True).reason == "empty_mount_point"
    assert check_root(top, known, has_files=False).ok
    assert check_root(top, None, has_files=True).reason == "empty_mount_point"
    (root / "b.md").touch()
    replaced = check_root(top, known, has_files=True)
    assert replaced.ok
    assert replaced.replaced
    shutil.rmtree(root)
    (tmp_path / "away").rename(root)
    back = check_root(top, known, has_files=True)
    assert (back.ok, back.replaced) == (True, False)
    (root / "a.md").unlink()
    assert check_root(top, known, has_files=True).ok  # the same folder, really emptied


TABLE = b"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:35 / /home/u/share rw - nfs4 server:/x rw
41 22 0:36 / /home/u/my\\040disk rw - fuse.sshfs host: rw
42 40 8:2 / /home/u/share/local rw - ext4 /dev/sdb1 rw
"""


def test_fault_c12_remote_file_systems_are_known(tmp_path: Path) -> None:
    assert filesystem_type(b"/home/u/notes", TABLE) == "ext4"
    assert filesystem_type(b"/home/u/share/a", TABLE) == "nfs4"
    assert filesystem_type(b"/home/u/shared", TABLE) == "ext4"
    assert filesystem_type(b"/home/u/my disk/a", TABLE) == "fuse.sshfs"
    assert filesystem_type(b"/home/u/share/local/a", TABLE) == "ext4"
    table = tmp_path / "mountinfo"
    table.write_bytes(b"1 0 0:1 / / rw - nfs x rw\n")
    assert not gives_events(os.fsencode(tmp_path), table)
    assert gives_events(os.fsencode(tmp_path), tmp_path / "missing")
