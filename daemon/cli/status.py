"""`ragd status`: what the daemon is doing and whether all is well."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from ragd.daemon.cli import connect
from ragd.daemon.cli.invocation import Invocation, common_options
from ragd.daemon.cli.output import Answer, printable, show

if TYPE_CHECKING:
    from rich.console import Console

_STATE_STYLES = {
    "idle": "green",
    "indexing": "cyan",
    "starting": "cyan",
    "rebuilding": "yellow",
    "degraded": "red",
}


@click.command("status", short_help="Show what the daemon does.")
@click.option("--failed", "with_failures", is_flag=True, help="Also list the files that failed, with the reason.")
@common_options
@click.pass_obj
def command(invocation: Invocation, with_failures: bool) -> None:
    """Show what the running daemon does: roots, files, chunks, what is pending, what failed.

    Exit code 5: no daemon is running.
    """
    config = invocation.config()
    from ragd.daemon.backend import OWNER

    with connect.backend(config, needs_daemon=True) as backend:
        answer = dict(backend.status(OWNER))
        if with_failures:
            answer |= backend.failures(OWNER)
    show(invocation, answer, for_people)


def for_people(console: Console, answer: Answer) -> None:
    state = str(answer.get("state", ""))
    console.print(f"ragd {answer.get('version', '')}: ", end="")
    console.print(state, style=_STATE_STYLES.get(state, ""), end="")
    console.print(f"   model {answer.get('model', '')}")
    facts = [f"{answer.get('chunks', 0):,} chunks", f"{answer.get('pending', 0):,} pending"]
    facts.append(f"{answer.get('failed', 0):,} failed")
    walked = last_walk(answer.get("last_walk"))
    console.print(", ".join([*facts, *([f"last walk {walked}"] if walked else [])]))
    _show_building(console, answer.get("generation") or {})
    _show_roots(console, answer.get("roots") or [])
    for problem in answer.get("problems") or []:
        text = problem.get("message", problem) if isinstance(problem, dict) else problem
        console.print(printable(f"! {text}"), style="yellow")
    for failure in answer.get("failures") or []:
        console.print(printable(f"  {failure['path']}: {failure['reason']} ({failure['detail']})"))


def last_walk(value: Any) -> str:
    """When the last walk ended, in the zone of who reads it; empty when there was none."""
    ended = value.get("ended") if isinstance(value, dict) else value
    if not ended:
        return ""
    try:
        return f"{datetime.fromisoformat(str(ended)).astimezone():%Y-%m-%d %H:%M:%S}"
    except ValueError:
        return str(ended)


def _show_building(console: Console, generation: dict[str, Any]) -> None:
    if generation.get("building") is not None:
        done, total = generation.get("done") or 0, generation.get("total") or 0
        console.print(f"A new index is being built: {done:,} of {total:,} files", style="yellow")


def _show_roots(console: Console, roots: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for title in ("root", "state", "files", "chunks", "watch"):
        table.add_column(
            title,
            style="dim" if title == "watch" else "",
            justify="right" if title in ("files", "chunks") else "left",
        )
    for root in roots:
        table.add_row(
            printable(str(root["path"])),
            str(root["state"]),
            f"{root['files']:,}",
            f"{root['chunks']:,}",
            str(root["watch"]),
            style="" if root["state"] == "ok" else "yellow",
        )
    if roots:
        console.print(table)
