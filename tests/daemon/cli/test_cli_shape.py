"""One JSON object on standard output and nothing else there, wherever the options stand; what is imported."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from ragd.daemon.cli.main import COMMANDS, cli, main
from ragd.daemon.errors import UsageError

Ask = Callable[..., tuple[int, str, str]]


def test_every_command_answers_in_one_json_object_wherever_the_option_stands(
    ask: Ask, backend: Any, config_file: Path
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


def test_config_may_stand_after_the_command(ask: Ask, backend: Any, config_file: Path) -> None:
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


def test_fault_g5_mcp_serves_what_the_daemon_answers_and_a_wrong_configuration_is_an_answer_too(
    config_file: Path, backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragd.daemon.api import mcp

    asked: list[Callable[[], object]] = []
    monkeypatch.setattr(mcp, "claim_stdout", lambda: b"wire")
    monkeypatch.setattr(mcp, "serve_stdio", lambda running, _version, *, wire: asked.append(running) if wire else None)
    assert main(["--config", str(config_file), "mcp"]) == 0
    assert asked[0]() is backend
    config_file.write_text("[watch]\npath = 1\n")
    with pytest.raises(UsageError):
        asked[0]()
    assert main(["--config", str(config_file), "mcp"]) == 0, "it stays up"
