"""A search without a daemon: it needs the vector index no more than the search of a daemon does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_kit import Household

from ragd.daemon.errors import StoreUnavailableError
from ragd.store.errors import StoreError
from ragd.store.memory_index import MemoryIndex


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Household]:
    """The vector index cannot be opened: a full disk, say."""
    household = Household(tmp_path)
    household.write("a.md", "alpha zqa\n")
    household.open()
    household.walk()

    def fail(*_: object) -> list[str]:
        raise StoreError("the disk is full")

    monkeypatch.setattr(type(household.running.store), "recover", fail)
    monkeypatch.setattr(type(household.running.store), "suspect", lambda _: None)
    monkeypatch.setattr(MemoryIndex, "query", fail)
    yield household
    household.close()


@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
def test_words_are_found_without_the_index(home: Household, mode: str) -> None:
    assert [hit["rel"] for hit in home.search("zqa", mode=mode)] == ["a.md"]


def test_a_dense_search_says_what_is_wrong(home: Household) -> None:
    with pytest.raises(StoreUnavailableError, match="the disk is full"):
        home.search("zqa", mode="dense")
