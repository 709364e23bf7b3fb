"""`ragd config`: check it, show what is in force, print the example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ragd.daemon.cli.invocation import Invocation, common_options
from ragd.daemon.cli.output import Answer, say, show, write_text

if TYPE_CHECKING:
    from rich.console import Console


@click.group("config", short_help="Check, show or print a configuration.")
def command() -> None:
    """Check the configuration, show what is in force, or print the commented example."""


@command.command("check")
@common_options
@click.pass_obj
def check(invocation: Invocation) -> None:
    """Say every problem of the configuration at once (exit code 2), or that there is none."""
    config = invocation.config(must_exist=True)
    answer = {
        "ok": True,
        "file": str(config.file),
        "roots": [{"name": root.name, "path": root.path} for root in config.roots],
        "warnings": list(config.warnings),
    }
    show(invocation, answer, _checked)


def _checked(console: Console, answer: Answer) -> None:
    console.print(f"{answer['file']}: all is well", style="green")
    for root in answer["roots"]:
        console.print(f"  {root['name']}: {root['path']}")
    for warning in answer["warnings"]:
        console.print(f"  {warning}", style="yellow")


@command.command("example")
@common_options
@click.pass_obj
def example(invocation: Invocation) -> None:
    """Print a configuration with every key, its default and what it means."""
    from ragd.daemon.config_example import example_toml

    text = example_toml()
    if invocation.as_json:
        show(invocation, {"example": text}, lambda _console, _answer: None)
    else:
        write_text(text)


@command.command("show")
@common_options
@click.pass_obj
def show_effective(invocation: Invocation) -> None:
    """Show what is in force: the file over the defaults, every path absolute."""
    from ragd.daemon.config_example import effective

    config = invocation.config()
    for warning in config.warnings:
        say(f"ragd: {warning}")
    values: dict[str, Any] = {**effective(config.settings)}
    values["store"] = {**values["store"], "path": str(config.state_dir)}
    values["server"] = {
        **values["server"],
        "socket": str(config.socket_path),
        "token_file": str(config.token_file),
    }
    values["root"] = [
        {**table, "name": root.name, "path": root.path}
        for table, root in zip(values["root"], config.roots, strict=True)
    ]
    answer = {"file": None if config.file is None else str(config.file), **values}
    show(invocation, answer, _shown)


def _shown(console: Console, answer: Answer) -> None:
    from ragd.daemon.config_example import effective_toml

    where = answer["file"] or "no file: the defaults"
    values = {key: value for key, value in answer.items() if key != "file"}
    console.print(f"# {where}\n{effective_toml(values)}", end="", soft_wrap=True)
