"""Index and vector cache lost together: the files are indexed again at once, not at the next timer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_kit import Household

from ragd.daemon.backend import OWNER


@pytest.fixture
def bereft(tmp_path: Path) -> Iterator[Household]:
    """Files that are indexed, and then every vector is gone."""
    home = Household(tmp_path)
    home.open()
    home.write("a.md", "# A\n\nalpha zqa\n")
    home.write("b.md", "# B\n\nbeta zqb\n")
    home.walk()
    home.close()
    home.clock.now += 60
    home.collections.clear()
    for file in (tmp_path / "state").glob("vectors.sqlite3*"):
        file.unlink()
    home.embedder.embedded.clear()
    home.open()
    yield home
    home.close()


def test_fault_d7_files_whose_vectors_are_lost_are_looked_at_again(bereft: Household) -> None:
    """The first walk came before the loss was seen, and found nothing to do."""
    bereft.walk()
    assert "walked" in bereft.settle()
    bereft.assert_true()
    assert len(bereft.embedder.embedded) == 2


def test_fault_d7_a_sync_brings_back_lost_vectors(bereft: Household) -> None:
    bereft.clock.now += 5
    answer = bereft.running.sync(OWNER, [])
    assert answer["embedded"]["texts"] == 2
    bereft.assert_true()
