"""`ragd init`: a commented configuration, where there is none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ragd.daemon.cli.invocation import Invocation, common_options
from ragd.daemon.cli.output import Answer, show

if TYPE_CHECKING:
    from rich.console import Console


@click.command("init", short_help="Write a commented configuration.")
@click.option("--root", "roots", multiple=True, metavar="DIR", help="A folder to index; can be repeated.")
@click.option("--force", is_flag=True, help="Overwrite a configuration that is there.")
@common_options
@click.pass_obj
def command(invocation: Invocation, roots: tuple[str, ...], force: bool) -> None:
    """Write a configuration with every key, its default and what it means.

    It goes where --config or $RAGD_CONFIG says, else into your configuration folder.
    """
    from ragd.daemon.config import config_to_write
    from ragd.daemon.config_write import write_new

    file = config_to_write(invocation.config_file, os.environ)
    config = write_new(file, [os.path.abspath(root) for root in roots], overwrite=force)
    answer = {
        "file": str(file),
        "roots": [{"name": root.name, "path": root.path} for root in config.roots],
        "warnings": list(config.warnings),
    }
    show(invocation, answer, _for_people)


def _for_people(console: Console, answer: Answer) -> None:
    console.print(f"Wrote {answer['file']}")
    for root in answer["roots"]:
        console.print(f"  {root['name']}: {root['path']}")
    for warning in answer["warnings"]:
        console.print(f"  {warning}", style="yellow")
    console.print("Change it as you like, then start with `ragd run`.")
