"""`ragd search`: passages that answer a question."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Any

import click

from ragd.daemon.cli import connect
from ragd.daemon.cli.invocation import Invocation, common_options
from ragd.daemon.cli.output import Answer, printable, show

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN_LINES = 8


@click.command("search", short_help="Find passages.")
@click.argument("query", nargs=-1, required=True)
@click.option("-k", type=click.IntRange(1, 1000), help="Number of hits; default [search] k.")
@click.option("--mode", type=click.Choice(["hybrid", "dense", "lexical"]), help="Default [search] mode.")
@click.option(
    "--expand",
    type=click.Choice(["none", "neighbours", "parent"]),
    help="Give more text around each hit.",
)
@click.option(
    "--root",
    multiple=True,
    metavar="NAME",
    help="Only this root. Filters can be repeated: any value will do.",
)
@click.option("--path", multiple=True, metavar="GLOB", help="Only files whose path in the root matches.")
@click.option(
    "--type", "type_", multiple=True, metavar="TYPE", help="Only files of this type, such as markdown."
)
@click.option("--kind", multiple=True, metavar="KIND", help="Only chunks of this kind, such as table.")
@click.option("--language", multiple=True, metavar="LANGUAGE", help="Only this language.")
@click.option("--label", multiple=True, metavar="LABEL", help="Only roots with this label.")
@click.option("--tag", multiple=True, metavar="TAG", help="Only files with this tag.")
@click.option("--page", type=click.IntRange(1), metavar="N", help="Only this page.")
@click.option("--since", metavar="DATE", help="Only files changed since: 2026-01-31, or 7d.")
@common_options
@click.pass_obj
def command(
    invocation: Invocation, /, query: tuple[str, ...], type_: tuple[str, ...], **options: Any
) -> None:
    """Find passages by meaning and by words, best first, each with where it stands."""
    given = {key: value for key, value in {**options, "type": type_}.items() if value not in (None, ())}
    params = {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}
    from ragd.daemon.backend import OWNER

    with connect.backend(invocation.config()) as backend:
        answer = backend.search(OWNER, {"query": " ".join(query), **params})
    show(invocation, answer, for_people)


def for_people(console: Console, answer: Answer) -> None:
    if answer.get("notice"):
        console.print(printable(str(answer["notice"])), style="yellow")
    if not answer["hits"]:
        console.print("Nothing found.")
    for number, hit in enumerate(answer["hits"], 1):
        if number > 1:
            console.print()
        _show_hit(console, number, hit)


def _show_hit(console: Console, number: int, hit: dict[str, Any]) -> None:
    console.print(f"{number}. ", style="bold", end="")
    console.print(printable(citation(hit)), style="bold cyan", end="")
    console.print(f"   {hit['score']:.2f}" + ("   stale" if hit.get("stale") else ""), style="dim")
    title = " › ".join([str(part) for part in (hit.get("title"), *(hit.get("section") or [])) if part])
    if title:
        console.print(f"   {printable(title)}", style="green")
    lines = textwrap.dedent(printable(str(hit["text"]))).strip("\n").splitlines()
    for line in lines[:_SHOWN_LINES]:
        console.print(f"   {line.rstrip()}", no_wrap=True, overflow="ellipsis")
    if len(lines) > _SHOWN_LINES:
        console.print(f"   … {len(lines) - _SHOWN_LINES} more lines", style="dim")


def citation(hit: dict[str, Any]) -> str:
    """Where a hit stands, as `ragd get` takes it: PATH:START-END, with the page where there is one."""
    path = str(hit["path"])
    here = os.getcwd() + os.sep
    place = f"{path.removeprefix(here)}:{hit['start_line']}-{hit['end_line']}"
    return f"{place} (page {hit['page']})" if hit.get("page") else place
