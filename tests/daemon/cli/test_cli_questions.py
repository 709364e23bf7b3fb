"""What the backend is asked, and what people see of its answers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragd.daemon.cli.output import printable
from ragd.daemon.cli.search import trail_of, window_of

Ask = Callable[..., tuple[int, str, str]]


def test_search_hands_on_every_filter_and_nothing_that_was_not_given(ask: Ask, backend: Any) -> None:
    ask("search", "two", "words")
    assert backend.asked[-1] == ("search", {"query": "two words"})
    ask(
        *("search", "q", "-k", "7", "--mode", "lexical", "--expand", "parent", "--root", "a", "--root", "b"),
        *(
            "--path",
            "*.md",
            "--type",
            "csv",
            "--kind",
            "table",
            "--language",
            "de",
            "--label",
            "l",
            "--tag",
            "t",
        ),
        *("--page", "3", "--since", "7d"),
    )
    assert backend.asked[-1][1] == {
        "query": "q",
        "k": 7,
        "mode": "lexical",
        "expand": "parent",
        "root": ["a", "b"],
        "path": ["*.md"],
        "type": ["csv"],
        "kind": ["table"],
        "language": ["de"],
        "label": ["l"],
        "tag": ["t"],
        "page": 3,
        "since": "7d",
    }


def test_paths_are_absolute_from_the_current_folder(
    ask: Ask, backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ask("get", "notes/../a.md:3-5")
    ask("why", "/abs/x.md")
    ask("sync", "notes", os.fsdecode(b"b\xff"))
    ask("forget", "gone")
    ask("forget", "--confirm", "notes")
    assert [question for _, question in backend.asked] == [
        {"path": f"{tmp_path}/a.md:3-5"},
        "/abs/x.md",
        [f"{tmp_path}/notes", f"{tmp_path}/b\\xff"],
        {"path": f"{tmp_path}/gone"},
        {"confirm": "notes"},
    ]


def test_get_by_id(ask: Ask, backend: Any) -> None:
    ask("get", "--id", "abc", "--neighbours", "2")
    ask("get", "--id", "abc", "--parent")
    assert [question for _, question in backend.asked] == [
        {"id": "abc", "neighbours": 2},
        {"id": "abc", "parent": True},
    ]


@pytest.mark.usefixtures("backend")
def test_a_hit_is_shown_with_its_citation_and_cannot_steer_the_terminal(ask: Ask) -> None:
    _, out, _ = ask("search", "q")
    assert out.startswith("1. /notes/a.md:3-5   0.88   stale\n   T › S / 1 › x\n   first\n   \ufffd[31mred\n")
    assert "… lines 1-8 of 12" in out
    assert "\x1b" not in out


def test_of_a_long_passage_the_lines_with_the_words_of_the_query_are_shown() -> None:
    lines = [f"line {number}" for number in range(40)]
    assert window_of(lines, "nothing of it") == (0, 8)
    lines[20], lines[22] = "The KEY hangs", "in the shed"
    assert window_of(lines, "where is the key of the shed") == (19, 27)
    lines[16] = "no shed"
    assert window_of(lines, "key shed") == (15, 23), "the first place with all the words"
    lines[30] = "the key of the shed"
    assert window_of(lines, "key shed") == (29, 37), "all of them in one line is better still"
    assert window_of(lines[:5], "key") == (0, 5)
    assert window_of([*lines[:-1], "pump"], "pump?") == (32, 40)


def test_the_window_never_begins_with_a_blank_line() -> None:
    lines = ["## Leaves", "", "1. brown rings on leaves", *(f"line {number}" for number in range(20))]
    assert window_of(lines, "brown leaves") == (2, 10)
    assert window_of(["", "", *lines[3:9], "brown leaves"], "brown leaves") == (2, 9)


def test_a_title_is_said_once() -> None:
    assert trail_of({"title": "T", "section": ["T", "S"]}) == "T › S"
    assert trail_of({"title": "T", "section": []}) == "T"
    assert trail_of({"title": "", "section": None}) == ""


@pytest.mark.usefixtures("backend")
def test_status_is_shown(ask: Ask) -> None:
    _, out, _ = ask("status", "--failed")
    assert "ragd 0.1.0: indexing   model m\n3,456 chunks, 3 pending, 1 failed" in out
    assert "10 of 1,200 files" in out
    assert "/notes" in out
    assert "! disk is full" in out
    assert "/notes/b.md: timeout (slow)" in out


@pytest.mark.usefixtures("backend")
def test_get_prints_the_lines_alone_in_a_pipe(ask: Ask) -> None:
    assert ask("get", "a")[1] == "one\ntwo\n"


def test_lines_are_not_wrapped_in_a_pipe(ask: Ask, backend: Any) -> None:
    long = "word " * 500
    backend.sync_answer = {**backend.sync_answer, "failures": [{"path": "/x", "reason": "r", "detail": long}]}
    assert long in ask("sync")[1]


def test_control_characters_are_shown_not_obeyed() -> None:
    assert printable("a\x1b[2Jb\x9bc\td\r\ne\x00") == "a\ufffd[2Jb\ufffdc\td\ne\ufffd"


def test_a_closed_pipe_is_quiet(config_file: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "ragd.daemon.cli.main", "--config", str(config_file), "config", "example"],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        timeout=50,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
