"""What changes on disk while a file is on its way to the index, and what takes the place of a file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from engine_kit import Household

from ragd.chunkers.records import Cut
from ragd.daemon.backend import OWNER
from ragd.daemon.model import HeldModel
from ragd.daemon.parsing.pool import InlinePool
from ragd.daemon.parsing.wire import ParseJob
from ragd.daemon.ticket import Ticket
from ragd.store.errors import StoreError


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Household]:
    household = Household(tmp_path)
    household.open()
    yield household
    household.close()


def _take_away(path: Path) -> None:
    path.unlink()


def _put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "in.md").write_text("text zqin\n")


def _put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _put_link(path: Path) -> None:
    other = path.parent.parent / "other.md"
    other.write_text("text zqother\n")
    path.unlink()
    path.symlink_to(other)


def _link_the_folder(path: Path) -> None:
    """The folder goes elsewhere and a link is left in its place: the file is still to be had under its old path."""
    elsewhere = path.parents[2] / "elsewhere"
    os.rename(path.parent, elsewhere)
    path.parent.symlink_to(elsewhere)


@pytest.mark.parametrize("change", [_take_away, _put_folder, _put_pipe, _put_link])
def test_a_file_whose_place_is_taken_by_something_else_is_forgotten(
    home: Household, change: Callable[[Path], None]
) -> None:
    home.write("a.md", "text zqfile\n")
    home.walk()
    change(home.notes / "a.md")
    home.hint("a.md", deleted=True)
    home.settle()
    assert home.rels("zqfile") == set()
    home.assert_true()


def test_files_of_a_folder_that_became_a_link_are_forgotten(home: Household) -> None:
    home.write("d/a.md", "text zqfile\n")
    home.write("b.md", "text zqb\n")
    home.walk()
    _link_the_folder(home.notes / "d" / "a.md")
    home.hint("d", deleted=True)
    home.settle()
    assert home.rels("zqfile") == set()
    home.assert_true()


class _Meddler(InlinePool):
    """Does something to the disk when the tenth file is handed over."""

    def __init__(self, held: HeldModel, meddle: Callable[[], None]) -> None:
        super().__init__(held.counter_spec, held.budget)
        self._meddle = meddle
        self._jobs = 0

    def submit(self, job: ParseJob) -> Future[Cut]:
        self._jobs += 1
        if self._jobs == 10:
            self._meddle()
        return super().submit(job)


def _index_while(tmp_path: Path, meddle: Callable[[Household], None]) -> Household:
    """60 files, and what is done to them after ten of them were read; the walk of it comes before their commit."""
    home = Household(tmp_path)

    def meddle_now() -> None:
        meddle(home)
        home.clock.now += 5

    home.parser = lambda held: _Meddler(held, meddle_now)
    for number in range(60):
        home.write(f"many/m{number}.md", f"text {number} zqmany\n" * 30)
    home.open()
    home.walk()
    home.settle()
    return home


def test_files_that_go_while_they_are_cut_leave_nothing(tmp_path: Path) -> None:
    """They were read, the folder went, the walk of it found neither file nor row, and then they were committed."""

    def remove(home: Household) -> None:
        shutil.rmtree(home.notes / "many")
        home.hint("many", deleted=True)

    home = _index_while(tmp_path, remove)
    assert home.indexed_ids() == set()
    assert home.running.status(OWNER)["problems"] == []
    home.close()


def test_files_that_become_ignored_while_they_are_cut_leave_nothing(tmp_path: Path) -> None:
    def ignore(home: Household) -> None:
        home.write(".ragdignore", "many/\n")
        home.hint(".ragdignore", "many")

    home = _index_while(tmp_path, ignore)
    assert home.rels("zqmany") == set()
    home.assert_true()
    home.close()


def test_who_asks_while_nothing_can_be_stored_is_told(home: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are stuck before their commit; who asks for them afterwards waits for tasks that are not even begun."""

    def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(home.running.store, "commit", fail)
    for number in range(300):
        home.write(f"n{number}.md", f"text {number}\n")
    home.running.walk_all()
    home.clock.now += 5
    while home.running.worker.tick().did != "failed":
        pass
    ticket = home.running.worker.request([("notes", b"")], Ticket())
    for _ in range(10):
        home.clock.now += 120
        home.running.worker.tick()
    with pytest.raises(StoreError, match="the disk is full"):
        ticket.wait(0)
