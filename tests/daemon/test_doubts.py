"""What a walk could not tell stays known until a walk of that very place can: held deletions, unreadable folders."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
from engine_kit import Household

from ragd.daemon.backend import OWNER, Answer
from ragd.daemon.files.walk import Walk


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Household]:
    household = Household(tmp_path)
    for number in range(30):
        household.write(f"d/n{number}.md", f"text {number} zqgone{number}\n")
    household.write("kept.md", "text zqkept\n")
    household.open()
    household.walk()
    yield household
    household.close()


@pytest.fixture
def shut(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Makes the folders of that name unreadable, for a walk (also of root)."""

    def close(name: bytes) -> None:
        def scandir(path: bytes) -> AbstractContextManager[Iterator[os.DirEntry[bytes]]]:
            if path.endswith(b"/" + name):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return os.scandir(path)

        monkeypatch.setattr("ragd.daemon.surveyor.Walk", partial(Walk, scandir=scandir))

    return close


def _lose(home: Household) -> None:
    """All of d/ goes without a trace."""
    for path in (home.notes / "d").iterdir():
        path.unlink()
    home.walk()


def _root(home: Household) -> Answer:
    return dict(home.running.status(OWNER)["roots"][0])


def test_held_files_are_stale_and_the_others_are_not(home: Household) -> None:
    _lose(home)
    assert [hit["stale"] for hit in home.search("zqgone3")] == [True]
    assert [hit["stale"] for hit in home.search("zqkept")] == [False]
    assert home.running.why(OWNER, str(home.notes / "d/n3.md"))["stale"] is True
    assert home.running.get(OWNER, {"path": str(home.notes / "d/n3.md")})["stale"] is True


def test_a_save_elsewhere_does_not_end_a_held_deletion(home: Household) -> None:
    _lose(home)
    home.write("kept.md", "text zqkept and more\n")
    home.hint("kept.md")
    home.settle()
    assert _root(home)["state"] == "mass_deletion"
    assert "30 of 31" in _root(home)["problem"]


def test_a_file_that_comes_back_is_held_no_more(home: Household) -> None:
    _lose(home)
    home.write("d/n3.md", "text 3 zqgone3\n")
    home.hint("d/n3.md")
    home.settle()
    assert "29 of 31" in _root(home)["problem"]
    assert [hit["stale"] for hit in home.search("zqgone3")] == [False]
    assert [hit["stale"] for hit in home.search("zqgone4")] == [True]


def test_the_last_held_file_that_is_forgotten_ends_it(home: Household) -> None:
    _lose(home)
    assert home.running.forget(OWNER, {"path": str(home.notes / "d/n3.md")})["forgotten"] == 1
    assert "29 of 30" in _root(home)["problem"]
    assert home.running.forget(OWNER, {"path": str(home.notes / "d")})["forgotten"] == 29
    assert _root(home)["state"] == "ok"
    assert home.running.status(OWNER)["problems"] == []


def test_an_unreadable_folder_is_known_until_it_can_be_read(home: Household, shut: Callable[[bytes], None]) -> None:
    shut(b"d")
    assert "cannot list" in home.running.sync(OWNER, [])["problems"][0]
    assert [hit["stale"] for hit in home.search("zqgone3")] == [True]
    home.write("kept.md", "text zqkept and more\n")
    home.hint("kept.md")
    home.settle()
    assert _root(home)["state"] == "degraded"
    shut(b"none")
    home.hint("d")
    home.settle()
    assert _root(home)["state"] == "ok"
    assert [hit["stale"] for hit in home.search("zqgone3")] == [False]


def test_what_is_in_an_unreadable_folder_is_not_forgotten_by_name(
    home: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lstat(path: bytes) -> os.stat_result:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr("ragd.daemon.reading.os.lstat", lstat)
    assert home.running.forget(OWNER, {"path": str(home.notes / "d")})["forgotten"] == 0


def test_why_of_a_folder_gives_no_reason_code(home: Household) -> None:
    answer = home.running.why(OWNER, str(home.notes / "d"))
    assert answer["state"] == "unknown"
    assert answer["reason"] is None
