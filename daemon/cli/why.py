"""`ragd why`: what became of a file, and by which rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ragd.daemon.cli import connect
from ragd.daemon.cli.invocation import Invocation, common_options, path_for_asking
from ragd.daemon.cli.output import Answer, printable, show

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {"indexed": "green", "failed": "red", "pending": "cyan"}


@click.command("why", short_help="Say what became of a file.")
@click.argument("path")
@common_options
@click.pass_obj
def command(invocation: Invocation, path: str) -> None:
    """Say whether a file is indexed, pending, ignored, skipped or failed, and by which rule.

    Exit code 9: nothing is known of it.
    """
    from ragd.daemon.backend import OWNER

    with connect.backend(invocation.config()) as backend:
        answer = backend.why(OWNER, path_for_asking(path))
    show(invocation, answer, for_people)


def for_people(console: Console, answer: Answer) -> None:
    state = str(answer["state"])
    console.print(printable(f"{answer['path']}: "), end="")
    console.print(state, style=_STYLES.get(state, "yellow"))
    for key in ("reason", "rule", "chunker", "detail"):
        if answer.get(key):
            console.print(printable(f"  {key}: {answer[key]}"))
