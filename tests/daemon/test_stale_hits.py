"""Hits say when they may be out of date: from the moment a file is saved, moved or removed until that is in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_kit import Household

from ragd.daemon.backend import OWNER


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Household]:
    household = Household(tmp_path)
    for name in ("a", "b", "d/e", "kept"):
        household.write(f"{name}.md", f"words zq{name[-1]} here\n")
    household.open()
    household.walk()
    yield household
    household.close()


def stale(home: Household, word: str, mode: str = "lexical") -> dict[str, bool]:
    return {hit["rel"]: hit["stale"] for hit in home.search(word, mode) if word in hit["text"]}


@pytest.mark.parametrize("mode", ["lexical", "hybrid", "dense"])
def test_fault_f2_until_the_first_walk_hits_of_what_changed_are_stale(home: Household, mode: str) -> None:
    home.close()
    home.write("a.md", "other words zqnew\n")
    (home.notes / "b.md").unlink()
    os.rename(home.notes / "d", home.notes / "f")
    home.open()
    assert stale(home, "zqa", mode) == {"a.md": True}
    assert stale(home, "zqb", mode) == {"b.md": True}
    assert stale(home, "zqe", mode) == {"d/e.md": True}
    assert stale(home, "zqt", mode) == {"kept.md": False}
    (hit,) = home.search("zqb")
    assert home.running.get(OWNER, {"id": hit["id"]})["stale"]
    assert home.running.get(OWNER, {"path": str(home.notes / "b.md")})["stale"]
    home.walk()
    assert stale(home, "zqa", mode) | stale(home, "zqb", mode) == {}
    assert stale(home, "zqnew", mode) == {"a.md": False}
    assert stale(home, "zqe", mode) == {"f/e.md": False}


def test_a_save_that_is_not_in_yet_makes_hits_stale_and_a_touched_file_is_current_again(home: Household) -> None:
    home.write("a.md", "other words zqnew\n")
    assert stale(home, "zqa") == {"a.md": True}
    assert home.running.why(OWNER, str(home.notes / "a.md"))["stale"]
    home.hint("a.md")
    home.settle()
    assert stale(home, "zqnew") == {"a.md": False}
    os.utime(home.notes / "kept.md", ns=(1, 1))
    assert stale(home, "zqt") == {"kept.md": True}
    home.walk()
    assert stale(home, "zqt") == {"kept.md": False}
