"""`ragd search`: passages that answer a question."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ragd.daemon.cli import connect
from ragd.daemon.cli.invocation import Invocation, common_options
from ragd.daemon.cli.output import Answer, printable, show

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN_LINES = 8
_COMMON_WORDS = frozenset(
    {"and", "are", "can", "did", "does", "for", "from", "had", "has", "have", "how", "into", "its", "not", "that",
     "the", "this", "was", "what", "when", "where", "which", "who", "why", "will", "with", "you", "your"}
)  # fmt: skip
"""Not shown in bold: they stand everywhere."""


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
@click.option("--type", "type_", multiple=True, metavar="TYPE", help="Only files of this type, such as markdown.")
@click.option("--kind", multiple=True, metavar="KIND", help="Only chunks of this kind, such as table.")
@click.option("--language", multiple=True, metavar="LANGUAGE", help="Only this language.")
@click.option("--label", multiple=True, metavar="LABEL", help="Only roots with this label.")
@click.option("--tag", multiple=True, metavar="TAG", help="Only files with this tag.")
@click.option("--page", type=click.IntRange(1), metavar="N", help="Only this page.")
@click.option("--since", metavar="DATE", help="Only files changed since: 2026-01-31, or 7d.")
@common_options
@click.pass_obj
def command(invocation: Invocation, /, query: tuple[str, ...], type_: tuple[str, ...], **options: Any) -> None:
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
        _show_hit(console, number, hit, str(answer["query"]))


def _show_hit(console: Console, number: int, hit: dict[str, Any], query: str) -> None:
    from rich.text import Text

    console.print(f"{number}. ", style="bold", end="")
    console.print(printable(citation(hit)), style="bold cyan", end="")
    console.print(f"   {hit['score']:.2f}" + ("   stale" if hit.get("stale") else ""), style="dim")
    if trail := trail_of(hit):
        console.print(f"   {printable(trail)}", style="green")
    lines = textwrap.dedent(printable(str(hit["text"]))).strip("\n").splitlines()
    start, end = window_of(lines, query)
    for line in lines[start:end]:
        text = Text(f"   {line.rstrip()}")
        text.highlight_regex(_words_pattern(query), "bold")
        console.print(text, no_wrap=True, overflow="ellipsis")
    if end - start < len(lines):
        console.print(f"   … lines {start + 1}-{end} of {len(lines)}", style="dim")


def trail_of(hit: dict[str, Any]) -> str:
    """Title and section path, the title once."""
    parts = [str(part) for part in (hit.get("title"), *(hit.get("section") or [])) if part]
    return " › ".join(parts[1:] if parts[:1] == parts[1:2] else parts)


def window_of(lines: Sequence[str], query: str) -> tuple[int, int]:
    """The lines to show of a long passage: those around the most words of the query, the first such; half
    open."""
    if len(lines) <= _SHOWN_LINES:
        return 0, len(lines)
    pattern = _words_pattern(query)
    found = [{word.casefold() for word in pattern.findall(line)} for line in lines]

    def worth(anchor: int) -> tuple[int, int, int]:
        below = set().union(*found[anchor : anchor + _SHOWN_LINES - 1])
        return len(below), len(found[anchor]), -anchor

    start = max(0, max(range(len(lines)), key=worth) - 1)  # a line above, to see where it begins
    start = min(start, len(lines) - _SHOWN_LINES)
    while not lines[start].strip() and start < len(lines) - 1:
        start += 1
    return start, min(start + _SHOWN_LINES, len(lines))


def _words_pattern(query: str) -> re.Pattern[str]:
    """Words of the query that say something. Matches nothing when there are none."""
    words = {word.casefold() for word in re.findall(r"\w{3,}", query)} - _COMMON_WORDS
    return re.compile(rf"(?i)\b(?:{'|'.join(sorted(map(re.escape, words)))})\b" if words else r"(?!)")


def citation(hit: dict[str, Any]) -> str:
    """Where a hit stands, as `ragd get` takes it: PATH:START-END, with the page where there is one."""
    path = str(hit["path"])
    here = os.getcwd() + os.sep
    place = f"{path.removeprefix(here)}:{hit['start_line']}-{hit['end_line']}"
    return f"{place} (page {hit['page']})" if hit.get("page") else place
