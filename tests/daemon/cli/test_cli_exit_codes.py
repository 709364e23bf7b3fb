"""Exit codes and messages: each error of the contract, wrong command lines, a wrong configuration."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from ragd.daemon import errors
from ragd.daemon.cli import connect
from ragd.daemon.cli.failure import failure_of
from ragd.daemon.cli.main import wants_json
from ragd.store.errors import FilterError, LockedError, ModelLoadingError, PlaceNotFoundError, StoreError

Ask = Callable[..., tuple[int, str, str]]


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


def test_an_error_of_the_backend_ends_the_command_with_its_code(ask: Ask, backend: Any) -> None:
    backend.raises = errors.NotFoundError("Nothing is indexed at /x.")
    assert ask("get", "/x") == (9, "", "ragd: Nothing is indexed at /x.\n")
    code, out, err = ask("get", "/x", "--json")
    assert (code, err) == (9, "")
    assert json.loads(out) == {"error": {"code": "not_found", "message": "Nothing is indexed at /x."}}
    assert backend.closed == 2


def test_a_filter_error_names_the_field(ask: Ask, backend: Any) -> None:
    backend.raises = FilterError("since", "'x' is no date")
    code, out, _ = ask("search", "q", "--json")
    assert (code, json.loads(out)["error"]["field"]) == (2, "since")


def test_an_unexpected_error_is_one_short_message(ask: Ask, backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    backend.raises = ZeroDivisionError("by nothing")
    code, out, err = ask("status")
    assert (code, out) == (1, "")
    assert "ZeroDivisionError: by nothing" in err
    assert "RAGD_DEBUG=1" in err
    assert "Traceback" not in err
    monkeypatch.setenv("RAGD_DEBUG", "1")
    assert "Traceback" in ask("status")[2]


def test_ctrl_c_is_quiet(ask: Ask, backend: Any) -> None:
    backend.raises = KeyboardInterrupt()
    code, out, err = ask("search", "q", "--json")
    assert (code, out, err.strip()) == (130, "", "")


def test_a_sync_with_failed_files_is_three(ask: Ask, backend: Any) -> None:
    backend.sync_answer = {
        **backend.sync_answer,
        "files": {**backend.sync_answer["files"], "failed": 1},
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
def test_other_commands_work_alone_without_a_daemon(ask: Ask, own_backend: Any, line: list[str]) -> None:
    assert ask(*line)[0] == 0
    assert own_backend.asked[0][0] == line[0]
    assert own_backend.closed == 1


@pytest.mark.parametrize("line", [["search", "q"], ["sync"]])
def test_fault_f12_a_state_that_is_held_is_four(ask: Ask, monkeypatch: pytest.MonkeyPatch, line: list[str]) -> None:
    def held(_config: object) -> None:
        raise errors.StateLockedError("Another daemon holds it.")

    monkeypatch.setattr(connect, "open_here", held)
    assert ask(*line)[0] == 4


def test_a_daemon_that_was_only_starting_is_asked_when_it_answers(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, backend: Any
) -> None:
    """Between its lock and its socket a daemon cannot be told from a command that works alone."""
    answers = iter([None, backend])

    def held(_config: object) -> None:
        raise errors.StateLockedError("A daemon holds it, which answers by now.")

    monkeypatch.setattr(connect, "find_running", lambda _config: next(answers))
    monkeypatch.setattr(connect, "open_here", held)
    assert ask("search", "q")[0] == 0
    assert backend.asked[0][0] == "search"


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
def test_a_wrong_command_line_is_two_and_says_why(ask: Ask, backend: Any, line: list[str], message: str) -> None:
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
