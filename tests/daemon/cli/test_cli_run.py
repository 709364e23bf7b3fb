"""`ragd run` before and beside the daemon: which configuration it runs, and what it shows meanwhile."""

from __future__ import annotations

import io
import logging
import re
from pathlib import Path
from typing import Any

import pytest

from ragd.daemon import run as run_module
from ragd.daemon.cli.main import main
from ragd.daemon.cli.run import ask_command
from ragd.daemon.cli.run_view import LiveView, PlainView, line_of
from ragd.daemon.config import Config, load_config
from ragd.daemon.config_example import example_toml
from ragd.daemon.sample_folder import copy_sample


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """Every configuration that a daemon was started with."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("RAGD_CONFIG", raising=False)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    started: list[Config] = []

    def run_daemon(config: Config, *, report: Any) -> int:
        report({"state": "idle", "chunks": 0, "roots": []})
        started.append(config)
        return 0

    monkeypatch.setattr(run_module, "run_daemon", run_daemon)
    monkeypatch.setattr(logging.getLogger("ragd"), "level", logging.getLogger("ragd").level)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    return started


def roots_of(config: Config) -> list[str]:
    return [root.path for root in config.roots]


def test_a_folder_without_a_configuration_is_written_into_one(ran: list[Config], tmp_path: Path) -> None:
    assert main(["run", str(tmp_path / "one")]) == 0
    assert roots_of(ran[0]) == [str(tmp_path / "one")]
    assert ran[0].file == tmp_path / "config/ragd/config.toml"
    assert ran[0].file.read_text() == example_toml((str(tmp_path / "one"),))


def test_a_folder_more_is_added_and_what_was_written_stays(ran: list[Config], tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(f"# mine\n[[root]]\npath = '{tmp_path}/one'\nname = 'first'")
    assert main(["run", "--config", str(file), str(tmp_path / "two"), f"{tmp_path}/one/"]) == 0
    assert roots_of(ran[0]) == [str(tmp_path / "one"), str(tmp_path / "two")]
    assert file.read_text().startswith(f"# mine\n[[root]]\npath = '{tmp_path}/one'\nname = 'first'\n")
    before = file.read_bytes()
    assert main(["run", "--config", str(file), str(tmp_path / "two")]) == 0
    assert file.read_bytes() == before


def test_a_mistyped_folder_is_refused_and_not_written(
    ran: list[Config], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file.md").write_text("text")
    assert main(["run", str(tmp_path / "one"), str(tmp_path / "onne")]) == 2
    assert f"{tmp_path}/onne is not there" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "file.md")]) == 2
    assert f"{tmp_path}/file.md is no folder" in capsys.readouterr().err
    assert not ran
    assert not (tmp_path / "config").exists()


def test_a_configuration_as_it_stands_is_run_as_it_stands(ran: list[Config], tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[[root]]\npath = 'one'\n")
    before = file.read_bytes()
    assert main(["--config", str(file), "run"]) == 0
    assert main(["--config", str(file), "run", "--sample"]) == 0
    assert file.read_bytes() == before
    assert [roots_of(config) for config in ran] == [[str(tmp_path / "one")]] * 2


def test_the_sample_makes_way_for_the_first_real_folder(ran: list[Config], tmp_path: Path) -> None:
    assert main(["run", "--sample"]) == 0
    sample = tmp_path / "data/ragd-sample"
    assert roots_of(ran[0]) == [str(sample)]
    assert main(["run", "--sample"]) == 0
    assert main(["run"]) == 0
    assert main(["run", str(tmp_path / "one")]) == 0
    assert [roots_of(config) for config in ran[1:]] == [[str(sample)], [str(sample)], [str(tmp_path / "one")]]


def test_without_a_configuration_and_a_folder_it_says_what_to_do(
    ran: list[Config], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run"]) == 2
    assert "ragd init" in capsys.readouterr().err
    assert not ran


def test_what_is_shown_goes_to_standard_error(
    ran: list[Config], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(tmp_path / "one")]) == 0
    out, err = capfd.readouterr()
    assert (out, len(ran)) == ("", 1)
    assert 'search "..."' in err
    assert "idle · 0 files, 0 chunks" in err


def test_the_sample_is_copied_once_and_never_over_what_was_changed(tmp_path: Path) -> None:
    folder = copy_sample(tmp_path / "a/sample")
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {
        "faq.md",
        "growing/compost.html",
        "growing/tomatoes.md",
        "letter.txt",
        "minutes/march-meeting.md",
        "seeds.csv",
        "watering.py",
        "welcome.md",
    }
    (folder / "faq.md").write_text("changed")
    copy_sample(folder)
    assert (folder / "faq.md").read_text() == "changed"
    assert [path.name for path in folder.parent.iterdir()] == ["sample"]


def test_how_to_ask_names_the_program_and_the_configuration_where_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "bin/ragd"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    file = tmp_path / "my config.toml"
    file.write_text("")
    config = load_config(file)
    assert ask_command(config, {"PATH": "/nowhere"}, str(program)) == f"bin/ragd --config '{file}' search \"...\""
    default = tmp_path / "config/ragd/config.toml"
    default.parent.mkdir(parents=True)
    default.write_text("")
    assert ask_command(load_config(default), {"PATH": str(program.parent)}, str(program)) == 'ragd search "..."'


BUSY: dict[str, Any] = {
    "state": "indexing",
    "generation": {"live": 1, "building": None, "done": 40, "total": 1200},
    "roots": [{"files": 40}],
    "chunks": 3456,
    "failed": 2,
    "problems": ["the disk \x1b is full"],
}


def test_the_line_says_how_far_it_is() -> None:
    assert line_of(BUSY) == "indexing · 40 of 1,200 files · 40 files, 3,456 chunks · 2 failed (`ragd status --failed`)"
    assert line_of({"state": "idle", "chunks": 5, "roots": [{"files": 1}]}) == "idle · 1 files, 5 chunks"
    assert line_of({}) == "starting · 0 files, 0 chunks"


def test_a_log_gets_a_line_when_something_is_new_and_now_and_then_while_it_works() -> None:
    now = [100.0]
    stream = io.StringIO()
    view = PlainView(stream, "ragd search", clock=lambda: now[0])
    for second in range(25):
        now[0] = 100.0 + second
        view.report({**BUSY, "chunks": second})
    for _ in range(3):
        view.report({"state": "idle", "chunks": 9, "roots": []})
    lines = stream.getvalue().splitlines()
    assert lines[:2] == ["! the disk \ufffd is full", "Ask from another terminal: ragd search"]
    assert [line.split("files, ")[1].split(" ")[0] for line in lines[2:]] == ["0", "10", "20", "9"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_one_line_that_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    view = LiveView(stream, "ragd search")
    view.start()
    assert "Ask" not in stream.getvalue(), "only once it serves"
    for _ in range(3):
        view.report(BUSY)
    view.report({"state": "idle", "chunks": 9, "roots": []})
    view.stop()
    shown = stream.getvalue()
    assert shown.count("is full") == 1
    assert shown.count("Ask from another terminal") == 1
    assert "Ask from another terminal:  ragd search" in re.sub(r"\x1b\[[\d;]*m", "", shown), "drawn over"
    assert "9 chunks" in shown
