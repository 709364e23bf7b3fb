"""`ragd forget`: take out of the index what is no longer there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ragd.daemon.cli import connect
from ragd.daemon.cli.invocation import Invocation, common_options, path_for_asking
from ragd.daemon.cli.output import Answer, printable, show

if TYPE_CHECKING:
    from rich.console import Console


@click.command("forget", short_help="Erase what is gone from the index.")
@click.argument("path", required=False)
@click.option("--confirm", metavar="ROOT", help="Carry out the deletions that are held in this root (name or path).")
@common_options
@click.pass_obj
def command(invocation: Invocation, path: str | None, confirm: str | None) -> None:
    """Erase from the index a PATH that is no longer there, or what a held mass deletion took away.

    Never touches a file.
    """
    if (path is None) == (confirm is None):
        raise click.UsageError("Give either a PATH or --confirm ROOT.")
    params = {"path": path_for_asking(path)} if path is not None else {"confirm": confirm}
    from ragd.daemon.backend import OWNER

    with connect.backend(invocation.config()) as backend:
        answer = backend.forget(OWNER, params)
    show(invocation, answer, for_people)


def for_people(console: Console, answer: Answer) -> None:
    for key, value in answer.items():
        console.print(printable(f"{key.replace('_', ' ')}: {value}"))
