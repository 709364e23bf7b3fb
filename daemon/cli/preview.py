"""`ragd preview`: how a file is cut, before it is indexed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ragd.daemon.cli.invocation import Invocation, common_options, path_for_asking
from ragd.daemon.cli.output import Answer, printable, show

if TYPE_CHECKING:
    from rich.console import Console

    from ragd.chunkers.records import Cut, CutSettings, SourceFile
    from ragd.daemon.config import Config


@click.command("preview", short_help="Show how a file is cut.")
@click.argument("file")
@click.option("--chunker", metavar="NAME", help="Cut with this chunker instead of the configured one.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A [chunking] key for this time; can be repeated.",
)
@common_options
@click.pass_obj
def command(invocation: Invocation, file: str, chunker: str | None, settings: tuple[str, ...]) -> None:
    """Show how FILE is cut into chunks. Needs no daemon and keeps nothing.

    The ids are those that would be stored, if FILE is under a root.
    """
    from ragd.daemon.preview import preview_answer, preview_source, with_wishes

    config = invocation.config()
    wishes = parse_settings(settings)
    source, in_force = preview_source(config, os.path.abspath(file))
    cut = _cut(config, source, with_wishes(in_force, chunker, wishes))
    show(invocation, preview_answer(path_for_asking(file), cut), for_people)


def parse_settings(given: Sequence[str]) -> dict[str, Any]:
    """KEY=VALUE pairs; a value is what TOML takes it for, else text. Raises UsageError."""
    from ragd.daemon.config import toml_or_text
    from ragd.daemon.errors import UsageError

    values = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set {pair}: write it as KEY=VALUE, such as target_tokens=300.")
        values[key.strip()] = toml_or_text(value.strip())
    return values


def _cut(config: Config, source: SourceFile, settings: CutSettings) -> Cut:
    from ragd.chunkers.cut import cut
    from ragd.daemon.preview import budget_of
    from ragd.store.embedding.slot import open_model

    model = open_model(
        config.embedding.model,
        offline=config.embedding.offline,
        query_prompt=config.embedding.query_prompt,
        document_prompt=config.embedding.document_prompt,
    )
    identity = model.identity
    return cut(source, settings, model.counter, budget_of(identity.max_tokens, identity.document_prompt))


def for_people(console: Console, answer: Answer) -> None:
    console.print(printable(str(answer["path"])), style="bold cyan")
    console.print(
        printable(f'{answer["type"]}, chunker {answer["chunker"]}, title "{answer["title"]}", ')
        + f"{len(answer['chunks'])} chunks"
    )
    if answer["skipped"]:
        console.print(printable(f"skipped: {answer['skipped']} {answer['detail']}"), style="yellow")
    for warning in answer["warnings"]:
        console.print(printable(f"! {warning}"), style="yellow")
    for number, chunk in enumerate(answer["chunks"], 1):
        _show_chunk(console, number, chunk)
    for dropped in answer["dropped"]:
        console.print(f"\nleft out: bytes {dropped['span'][0]}-{dropped['span'][1]} ({dropped['reason']})", style="dim")


def _show_chunk(console: Console, number: int, chunk: dict[str, Any]) -> None:
    lines = f"lines {chunk['start_line']}-{chunk['end_line']}"
    head = f"{number}. {lines}, {chunk['kind']}, {chunk['tokens']} tokens"
    console.print()
    console.print(head, style="bold", end="")
    console.print(f"  {chunk['id'][:12]}", style="dim")
    for added in (chunk["prefix"], chunk["overlap"]):
        if added.strip():
            console.print(_indented(added), style="dim", soft_wrap=not console.is_terminal)
    console.print(_indented(chunk["text"]), soft_wrap=not console.is_terminal)


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in printable(text).strip("\n").splitlines())
