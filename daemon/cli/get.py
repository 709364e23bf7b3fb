"""`ragd get`: the indexed text of a place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ragd.daemon.cli import connect
from ragd.daemon.cli.invocation import Invocation, common_options, path_for_asking
from ragd.daemon.cli.output import Answer, printable, show

if TYPE_CHECKING:
    from rich.console import Console


@click.command("get", short_help="Print indexed lines or a chunk.")
@click.argument("place", required=False, metavar="[PATH[:START-END]]")
@click.option("--id", "chunk_id", metavar="CHUNK", help="The chunk with this id, instead of a path.")
@click.option("--parent", is_flag=True, help="With --id: the section, class or table it belongs to.")
@click.option("--neighbours", type=click.IntRange(0), metavar="N", help="With --id: N chunks before and after it too.")
@common_options
@click.pass_obj
def command(
    invocation: Invocation,
    place: str | None,
    chunk_id: str | None,
    parent: bool,
    neighbours: int | None,
) -> None:
    """Print lines of an indexed file, or a chunk by its id. Lines count from 1, both ends included.

    Exit code 9: it is not in the index.
    """
    if (place is None) == (chunk_id is None):
        raise click.UsageError("Give either a PATH or --id CHUNK.")
    if chunk_id is None and (parent or neighbours):
        raise click.UsageError("--parent and --neighbours go with --id.")
    params: dict[str, Any] = {"path": path_for_asking(place)} if place is not None else {"id": chunk_id}
    if parent:
        params["parent"] = True
    if neighbours:
        params["neighbours"] = neighbours
    from ragd.daemon.backend import OWNER

    with connect.backend(invocation.config()) as backend:
        answer = backend.get(OWNER, params)
    show(invocation, answer, for_people)


def for_people(console: Console, answer: Answer) -> None:
    if console.is_terminal:
        place = f"{answer['path']}:{answer['start_line']}-{answer['end_line']}"
        console.print(printable(place), style="bold cyan")
    console.print(printable(str(answer["text"])).removesuffix("\n"), soft_wrap=True)
