"""The command line: exit codes, JSON on standard output and nothing else there, where options may stand,
what is imported. The backend is a fake; the configuration and the preview are real."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from ragd.daemon import errors
from ragd.daemon.cli import connect
from ragd.daemon.cli.failure import failure_of
from ragd.daemon.cli.invocation import Invocation
from ragd.daemon.cli.main import COMMANDS, cli, main, wants_json
from ragd.daemon.cli.output import printable
from ragd.daemon.cli.preview import parse_settings
from ragd.daemon.cli.search import trail_of, window_of
from ragd.daemon.config import load_config
from ragd.daemon.config_example import example_toml
from ragd.store.errors import FilterError, LockedError, ModelLoadingError, PlaceNotFoundError, StoreError

HIT = {
    "id": "abc",
    "path": "/notes/a.md",
    "rel": "a.md",
    "root": "notes",
    "type": "markdown",
    "kind": "prose",
    "title": "T",
    "section": ["S / 1", "x"],
    "start_line": 3,
    "end_line": 5,
    "page": None,
    "score": 0.875,
    "text": "  first\n  \x1b[31mred\n" + "  more\n" * 10,
    "stale": True,
}
STATUS = {
    "state": "indexing",
    "version": "0.1.0",
    "model": "m",
    "generation": {"live": 1, "building": 2, "done": 10, "total": 1200},
    "roots": [{"path": "/notes", "state": "ok", "files": 12, "chunks": 3456, "watch": "native"}],
    "pending": 3,
    "failed": 1,
    "chunks": 3456,
    "last_walk": "2026-01-01T00:00:00Z",
    "problems": ["disk is full"],
}
SYNC: dict[str, Any] = {
    "files": {"seen": 9, "indexed": 2, "unchanged": 7, "moved": 0, "forgotten": 0, "skipped": 0, "failed": 0},
    "chunks": {"added": 5, "kept": 1, "removed": 2, "total": 1040},
    "embedded": {"texts": 5, "tokens": 99, "seconds": 0.1},
    "failures": [],
    "seconds": 0.5,
}


class FakeBackend:
    """Answers what it is told to and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.raises: BaseException | None = None
        self.sync_answer = SYNC
        self.closed = 0

    def _answer(self, name: str, question: Any, answer: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((name, question))
        if self.raises is not None:
            raise self.raises
        return answer

    def status(self, _client: object) -> dict[str, Any]:
        return self._answer("status", None, STATUS)

    def search(self, _client: object, params: Mapping[str, Any]) -> dict[str, Any]:
        return self._answer("search", params, {"query": params["query"], "hits": [HIT], "notice": None})

    def get(self, _client: object, params: Mapping[str, Any]) -> dict[str, Any]:
        return self._answer("get", params, {"path": "/a", "start_line": 1, "end_line": 2, "text": "one\ntwo\n"})

    def why(self, _client: object, path: str) -> dict[str, Any]:
        return self._answer("why", path, {"path": path, "state": "ignored", "reason": "gitignore", "rule": "*.log"})

    def sync(self, _client: object, paths: Sequence[str], progress: object = None) -> dict[str, Any]:
        assert progress is None, "no bar where standard error is not a terminal"
        return self._answer("sync", list(paths), self.sync_answer)

    def forget(self, _client: object, params: Mapping[str, Any]) -> dict[str, Any]:
        return self._answer("forget", params, {"forgotten": 4, "root": "notes"})

    def failures(self, _client: object) -> dict[str, Any]:
        failure = {"path": "/notes/b.md", "reason": "timeout", "detail": "slow"}
        return self._answer("failures", None, {"failures": [failure]})

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg-config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg-data"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RAGD_CONFIG", raising=False)
    monkeypatch.delenv("RAGD_DEBUG", raising=False)
    (tmp_path / "notes").mkdir()
    file = tmp_path / "config.toml"
    file.write_text('[store]\npath = "state"\n[[root]]\npath = "notes"\n')
    return file


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    fake = FakeBackend()
    monkeypatch.setattr(connect, "find_running", lambda _config: fake)
    return fake


Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(config_file: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Ask:
    """Runs a command line with the configuration; gives exit code, standard output, standard error."""

    def run(*arguments: str, configured: bool = True) -> tuple[int, str, str]:
        code = main([*(["--config", str(config_file)] if configured else []), *arguments])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


# --- shape ---


def test_every_command_answers_in_one_json_object_wherever_the_option_stands(
    ask: Ask, backend: FakeBackend, config_file: Path
) -> None:
    (config_file.parent / "notes/a.txt").write_text("Some words.\n")
    lines = [
        ["status"],
        ["status", "--failed"],
        ["search", "a", "question"],
        ["get", "a.md"],
        ["why", "a.md"],
        ["sync"],
        ["forget", "a.md"],
        ["preview", str(config_file.parent / "notes/a.txt")],
        ["config", "check"],
        ["config", "example"],
        ["config", "show"],
        ["service", "install", "--dry-run"],
    ]
    for line in lines:
        for arguments in (["--json", *line], [*line, "--json"]):
            code, out, err = ask(*arguments)
            assert (code, err) == (0, ""), arguments
            assert out.count("\n") == 1
            assert isinstance(json.loads(out), dict)
    assert backend.closed == 14


def test_config_may_stand_after_the_command(ask: Ask, backend: FakeBackend, config_file: Path) -> None:
    code, out, _ = ask("config", "show", "--json", "--config", str(config_file), configured=False)
    assert (code, json.loads(out)["file"]) == (0, str(config_file))
    assert not backend.asked


def test_every_command_is_there_with_its_help(ask: Ask) -> None:
    code, out, _ = ask("--help")
    assert code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in out
    assert "..." not in out.split("Commands:")[1], "every short help fits its line"

    def visit(command: click.Command, words: list[str]) -> None:
        code, out, err = ask(*words, "--help", configured=False)
        assert (code, err) == (0, ""), words
        assert out.startswith(f"Usage: ragd {' '.join(words)}".rstrip())
        assert command.help
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                inner = command.get_command(click.Context(command), name)
                assert inner is not None
                visit(inner, [*words, name])
            return
        for parameter in command.params:
            assert isinstance(parameter, click.Argument) or getattr(parameter, "help", None), (
                words,
                parameter.name,
            )
        names = {option for parameter in command.params for option in parameter.opts}
        assert {"--json", "--config"} <= names, words

    visit(cli, [])


def test_the_version(ask: Ask) -> None:
    assert ask("--version")[1].startswith("ragd 0.")


# --- exit codes ---


@pytest.mark.parametrize(
    ("error", "exit_code", "code"),
    [
        (errors.UsageError("x"), 2, "usage"),
        (FilterError("path", "x"), 2, "invalid"),
        (click.UsageError("x"), 2, "usage"),
        (errors.StateLockedError("x"), 4, "locked"),
        (LockedError("x"), 4, "locked"),
        (errors.NoDaemonError("x"), 5, "no_daemon"),
        (errors.ModelUnavailableError("x"), 6, "model"),
        (ModelLoadingError("x"), 6, "model"),
        (errors.StoreUnavailableError("x"), 7, "store"),
        (StoreError("x"), 7, "store"),
        (errors.AddressInUseError("x"), 8, "address_in_use"),
        (errors.NotFoundError("x"), 9, "not_found"),
        (PlaceNotFoundError("x"), 9, "not_found"),
        (KeyError("x"), 1, "error"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
    ],
)
def test_exit_codes_are_those_of_the_contract(error: BaseException, exit_code: int, code: str) -> None:
    failure = failure_of(error)
    assert (failure.exit_code, failure.code) == (exit_code, code)


def test_an_error_of_the_backend_ends_the_command_with_its_code(ask: Ask, backend: FakeBackend) -> None:
    backend.raises = errors.NotFoundError("Nothing is indexed at /x.")
    assert ask("get", "/x") == (9, "", "ragd: Nothing is indexed at /x.\n")
    code, out, err = ask("get", "/x", "--json")
    assert (code, err) == (9, "")
    assert json.loads(out) == {"error": {"code": "not_found", "message": "Nothing is indexed at /x."}}
    assert backend.closed == 2


def test_a_filter_error_names_the_field(ask: Ask, backend: FakeBackend) -> None:
    backend.raises = FilterError("since", "'x' is no date")
    code, out, _ = ask("search", "q", "--json")
    assert (code, json.loads(out)["error"]["field"]) == (2, "since")


def test_an_unexpected_error_is_one_short_message(
    ask: Ask, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.raises = ZeroDivisionError("by nothing")
    code, out, err = ask("status")
    assert (code, out) == (1, "")
    assert "ZeroDivisionError: by nothing" in err
    assert "RAGD_DEBUG=1" in err
    assert "Traceback" not in err
    monkeypatch.setenv("RAGD_DEBUG", "1")
    assert "Traceback" in ask("status")[2]


def test_ctrl_c_is_quiet(ask: Ask, backend: FakeBackend) -> None:
    backend.raises = KeyboardInterrupt()
    code, out, err = ask("search", "q", "--json")
    assert (code, out, err.strip()) == (130, "", "")


def test_a_sync_with_failed_files_is_three(ask: Ask, backend: FakeBackend) -> None:
    backend.sync_answer = {
        **SYNC,
        "files": {**SYNC["files"], "failed": 1},
        "failures": [{"path": "/notes/b.md", "reason": "timeout", "detail": "not parsed within 30 s"}],
    }
    code, out, _ = ask("sync")
    assert code == 3
    assert "/notes/b.md: timeout (not parsed within 30 s)" in out
    assert ask("sync", "--json")[0] == 3


def test_status_without_a_daemon_is_five(ask: Ask) -> None:
    code, out, err = ask("status")
    assert (code, out) == (5, "")
    assert "`ragd run`" in err
    code, out, _ = ask("status", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (5, "no_daemon")


@pytest.mark.parametrize("line", [["search", "q"], ["get", "a"], ["why", "a"], ["sync"], ["forget", "a"]])
def test_other_commands_work_alone_without_a_daemon(ask: Ask, monkeypatch: pytest.MonkeyPatch, line: list[str]) -> None:
    fake = FakeBackend()
    monkeypatch.setattr(connect, "open_here", lambda _config: fake)
    assert ask(*line)[0] == 0
    assert fake.asked[0][0] == line[0]
    assert fake.closed == 1


@pytest.mark.parametrize("line", [["search", "q"], ["sync"]])
def test_fault_f12_a_state_that_is_held_is_four(ask: Ask, monkeypatch: pytest.MonkeyPatch, line: list[str]) -> None:
    def held(_config: object) -> FakeBackend:
        raise errors.StateLockedError("Another daemon holds it.")

    monkeypatch.setattr(connect, "open_here", held)
    assert ask(*line)[0] == 4


def test_fault_f17_a_wrong_configuration_is_two_with_every_problem(ask: Ask, config_file: Path) -> None:
    config_file.write_text('[watch]\npath = ["~/notes"]\n[chunking]\nchunk-size = 300\noverlap_ratio = "50"\n')
    for line in (["status"], ["search", "q"], ["config", "check"], ["run"], ["sync"]):
        code, out, err = ask(*line)
        assert (code, out) == (2, "")
        for key in ("watch.path", "chunking.chunk-size", "chunking.overlap_ratio"):
            assert f"{config_file}:" in err
            assert key in err
        assert "did you mean target_tokens?" in err
        code, out, err = ask(*line, "--json")
        assert (code, err) == (2, "")
        assert len(json.loads(out)["error"]["problems"]) == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["serch", "q"], "did you mean `ragd search`?"),
        (["search"], "Missing argument"),
        (["search", "q", "--mode", "fuzzy"], "fuzzy"),
        (["search", "q", "-k", "0"], "0 is not in the range"),
        (["search", "q", "--pth", "x"], "--path"),
        (["get"], "either a PATH or --id"),
        (["get", "a", "--id", "b"], "either a PATH or --id"),
        (["get", "a", "--parent"], "go with --id"),
        (["forget"], "either a PATH or --confirm"),
    ],
)
def test_a_wrong_command_line_is_two_and_says_why(
    ask: Ask, backend: FakeBackend, line: list[str], message: str
) -> None:
    code, out, err = ask(*line)
    assert (code, out) == (2, "")
    assert message in err
    code, out, err = ask(*line, "--json")
    assert (code, err) == (2, "")
    assert json.loads(out)["error"]["code"] == "usage"
    assert not backend.asked


def test_json_after_the_end_of_options_is_no_option() -> None:
    assert wants_json(["search", "--json", "q"])
    assert not wants_json(["search", "--", "--json"])


# --- what is asked ---


def test_search_hands_on_every_filter_and_nothing_that_was_not_given(ask: Ask, backend: FakeBackend) -> None:
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
    ask: Ask, backend: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def test_get_by_id(ask: Ask, backend: FakeBackend) -> None:
    ask("get", "--id", "abc", "--neighbours", "2")
    ask("get", "--id", "abc", "--parent")
    assert [question for _, question in backend.asked] == [
        {"id": "abc", "neighbours": 2},
        {"id": "abc", "parent": True},
    ]


# --- what people see ---


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


def test_lines_are_not_wrapped_in_a_pipe(ask: Ask, backend: FakeBackend) -> None:
    long = "word " * 500
    backend.sync_answer = {**SYNC, "failures": [{"path": "/x", "reason": "r", "detail": long}]}
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


# --- init, config, preview ---


def test_init_writes_a_configuration_that_is_valid(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    file = tmp_path / "xdg-config/ragd/config.toml"
    code, out, _ = ask("init", "--root", str(tmp_path / "notes"), "--root", str(tmp_path / "b"), configured=False)
    assert code == 0
    assert str(file) in out
    assert [root.path for root in load_config(file).roots] == [str(tmp_path / "notes"), str(tmp_path / "b")]
    assert not list(file.parent.glob(".config-*"))


def test_init_does_not_overwrite_without_force(ask: Ask, config_file: Path, tmp_path: Path) -> None:
    before = config_file.read_bytes()
    code, _, err = ask("init")
    assert (code, config_file.read_bytes()) == (2, before)
    assert "--force" in err
    assert ask("init", "--force")[0] == 0
    assert config_file.read_text() == example_toml()
    assert tmp_path.exists()


def test_init_refuses_what_would_be_refused_when_read(ask: Ask, tmp_path: Path) -> None:
    notes = str(tmp_path / "notes")
    code, _, err = ask("init", "--root", notes, "--root", f"{notes}/", "--force")
    assert code == 2
    assert "is the folder of root[0] already" in err


def test_config_show_is_valid_toml_that_says_the_same(ask: Ask, config_file: Path, tmp_path: Path) -> None:
    config_file.write_text(
        '[store]\npath = "state"\n[chunking.markdown]\nmax_tokens = 90\n'
        '[[root]]\npath = "notes"\nlabels = ["l"]\n[[root.rule]]\nglob = "*"\nprefix = false\n'
    )
    shown = tmp_path / "shown.toml"
    shown.write_text(ask("config", "show")[1])
    one, other = load_config(config_file), load_config(shown)
    assert (one.roots, one.state_dir, one.socket_path) == (other.roots, other.state_dir, other.socket_path)
    assert one.cut_settings(one.roots[0], "a.md") == other.cut_settings(other.roots[0], "a.md")


def test_config_check_without_a_file_says_how_to_get_one(ask: Ask) -> None:
    code, _, err = ask("config", "check", configured=False)
    assert code == 2
    assert "ragd init" in err


def test_settings_of_preview_are_read_as_toml_or_text() -> None:
    given = [
        "max_tokens=90",
        "prefix=false",
        "chunker=paragraph",
        "overlap_ratio = 0.1",
        'x="a=b"',
        "y=1\nz=2",
    ]
    assert parse_settings(given) == {
        "max_tokens": 90,
        "prefix": False,
        "chunker": "paragraph",
        "overlap_ratio": 0.1,
        "x": "a=b",
        "y": "1\nz=2",
    }
    with pytest.raises(errors.UsageError, match="KEY=VALUE"):
        parse_settings(["max_tokens"])


def test_preview_cuts_a_file_with_the_settings_in_force(ask: Ask, config_file: Path) -> None:
    file = config_file.parent / "notes/a.txt"
    file.write_text("A sentence of some words that stands here. " * 60 + "\n")
    code, out, _ = ask("preview", str(file), "--json")
    chunks = json.loads(out)["chunks"]
    assert code == 0
    assert "".join("".join(chunk["text"] for chunk in chunks).split()) == "".join(file.read_text().split())
    finer = json.loads(ask("preview", str(file), "--set", "max_tokens=60", "--json")[1])["chunks"]
    assert len(finer) > len(chunks)
    assert max(chunk["tokens"] for chunk in finer) <= 62, "special tokens come on top"
    assert "lines 1-1" in ask("preview", str(file))[1]


def test_preview_takes_no_unknown_setting(ask: Ask, config_file: Path) -> None:
    file = config_file.parent / "notes/a.txt"
    file.write_text("words\n")
    code, _, err = ask("preview", str(file), "--set", "max_token=60", "--set", 'overlap_ratio="x"')
    assert code == 2
    assert "max_token: unknown key; did you mean max_tokens?" in err
    assert "overlap_ratio: must be a number" in err
    code, _, err = ask("preview", str(file), "--chunker", "paragraf")
    assert code == 2
    assert "did you mean paragraph?" in err


def test_preview_of_what_is_no_file(ask: Ask, tmp_path: Path) -> None:
    assert ask("preview", str(tmp_path / "none.txt"))[0] == 9
    assert ask("preview", str(tmp_path))[0] == 2
    os.mkfifo(tmp_path / "pipe")
    code, _, err = ask("preview", str(tmp_path / "pipe"))
    assert code == 2
    assert "not_regular" in err


def test_preview_of_a_link_is_the_preview_of_its_target(ask: Ask, config_file: Path) -> None:
    file = config_file.parent / "notes/a.txt"
    file.write_text("words\n")
    (config_file.parent / "link.txt").symlink_to(file)
    one = json.loads(ask("preview", str(file), "--json")[1])
    other = json.loads(ask("preview", str(config_file.parent / "link.txt"), "--json")[1])
    assert one["chunks"] == other["chunks"]


def test_an_invocation_without_a_configuration_has_the_defaults(config_file: Path, tmp_path: Path) -> None:
    assert config_file.exists()
    assert Invocation().config().state_dir == tmp_path / "xdg-data/ragd"


# --- what is imported ---


@pytest.mark.parametrize(
    ("line", "unwanted"),
    [
        (["--help"], ("torch", "chromadb", "pydantic", "rich", "httpx", "numpy", "tokenizers", "tomli")),
        (["status"], ("torch", "chromadb", "sentence_transformers", "apscheduler", "tiktoken", "rich")),
        (
            ["config", "check"],
            ("torch", "chromadb", "sentence_transformers", "tokenizers", "httpx", "tree_sitter"),
        ),
        (["preview", "notes/a.txt"], ("torch", "chromadb", "sentence_transformers", "httpx", "starlette")),
    ],
)
def test_a_command_does_not_load_what_it_does_not_need(
    config_file: Path, line: list[str], unwanted: tuple[str, ...]
) -> None:
    (config_file.parent / "notes/a.txt").write_text("words\n")
    program = (
        "import sys; from ragd.daemon.cli.main import main; code = main(sys.argv[1:]); "
        f"print(sorted(set({unwanted!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--config", str(config_file), *line],
        cwd=config_file.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    assert done.stderr.splitlines()[-1] == "[]"


def test_the_program_is_on_the_path() -> None:
    program = Path(sys.executable).with_name("ragd")
    assert shutil.which(str(program))
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout.startswith("ragd ")
