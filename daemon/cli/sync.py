"""`ragd sync`: bring the index up to date once, and say what was done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ragd.daemon.cli import connect
from ragd.daemon.cli.invocation import Invocation, common_options, path_for_asking
from ragd.daemon.cli.output import Answer, console, printable, say, show
from ragd.daemon.errors import EXIT_SOME_FAILED

if TYPE_CHECKING:
    from rich.console import Console

    from ragd.daemon.backend import Progress

_SHOWN_FAILURES = 20


@click.command("sync", short_help="Bring the index up to date once.")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@common_options
@click.pass_obj
def command(invocation: Invocation, paths: tuple[str, ...]) -> int:
    """Bring the index up to date with the files: everything, or only PATHs.

    Ends when all of it is in. Exit code 3: done, but some files failed.
    """
    config = invocation.config(must_exist=True)
    for warning in config.warnings:
        say(f"ragd: {warning}")
    from ragd.daemon.backend import OWNER

    with connect.backend(config) as backend, _progress_bar() as progress:
        answer = backend.sync(OWNER, [path_for_asking(path) for path in paths], progress)
    show(invocation, answer, for_people)
    return EXIT_SOME_FAILED if answer["files"]["failed"] else 0


@contextmanager
def _progress_bar() -> Iterator[Progress | None]:
    """A bar on standard error when that is a terminal; else nothing is reported."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[texts]} texts embedded  {task.fields[path]}"),
    )
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=None, path="", texts=0)
        yield _reporter(lambda **fields: bar.update(task, **fields))


def _reporter(update: Callable[..., None]) -> Progress:
    def report(progress: Mapping[str, Any]) -> None:
        update(
            completed=progress.get("done", 0),
            total=progress.get("total"),
            texts=progress.get("texts_embedded", 0),
            path=printable(str(progress.get("path", "")))[-60:],
        )

    return report


def for_people(console: Console, answer: Answer) -> None:
    files, chunks, embedded = answer["files"], answer["chunks"], answer["embedded"]
    parts = [f"{files[key]:,} {key}" for key in ("indexed", "unchanged", "moved", "forgotten", "skipped") if files[key]]
    console.print(f"{files['seen']:,} files seen: {', '.join(parts) or 'nothing to do'}.")
    console.print(
        f"{chunks['total']:,} chunks: {chunks['added']:,} added, {chunks['removed']:,} removed; "
        f"{embedded['texts']:,} texts embedded. {answer['seconds']:.1f} s."
    )
    failures = answer["failures"]
    if failures:
        console.print(f"{files['failed']:,} failed:", style="red")
    for failure in failures[:_SHOWN_FAILURES]:
        console.print(printable(f"  {failure['path']}: {failure['reason']} ({failure['detail']})"))
    if len(failures) > _SHOWN_FAILURES:
        console.print(f"  and {len(failures) - _SHOWN_FAILURES:,} more: `ragd status --failed`")
