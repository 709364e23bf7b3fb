"""`ragd`: finds the command, runs it, and turns what it raised into a message and an exit code.

What must stay true: commands are imported when they are used; every way out of the program passes `main`.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import NoReturn

import click

from ragd.daemon.cli.failure import EXIT_OUTPUT_CLOSED, failure_of
from ragd.daemon.cli.invocation import Invocation, common_options
from ragd.daemon.cli.output import show_failure, silence_standard_output
from ragd.daemon.errors import UsageError

COMMANDS = (
    "init",
    "run",
    "sync",
    "status",
    "search",
    "get",
    "why",
    "preview",
    "forget",
    "config",
    "service",
    "mcp",
)
"""In the order of a first acquaintance. Each is `command` in the module of its name."""


class LazyGroup(click.Group):
    """Commands that are imported by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"ragd.daemon.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, 1)
            hint = f"; did you mean `ragd {near[0]}`?" if near else ""
            raise click.UsageError(f"There is no command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


def _show_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"ragd {version('ragd')}")
        context.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True)
@common_options
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version.",
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Keeps a local index of your folders true to the files in them, for any assistant on this machine to
    ask.

    Start with `ragd init --root FOLDER` and `ragd run`; then `ragd search "..."` from another terminal.
    """
    context.ensure_object(Invocation)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result = cli.main(args=given, prog_name="ragd", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_standard_output()
        return EXIT_OUTPUT_CLOSED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return UsageError.exit_code
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    except BaseException as error:  # noqa: BLE001 - the last place: whatever it is becomes a message and a code
        failure = failure_of(error)
        if os.environ.get("RAGD_DEBUG"):
            traceback.print_exception(error)
        if failure.exit_code == EXIT_OUTPUT_CLOSED:
            silence_standard_output()
        show_failure(failure, as_json=wants_json(given))
        return failure.exit_code
    return result if isinstance(result, int) else 0


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether --json was given, also on a command line that could not be read."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def run_program() -> NoReturn:
    """The program's entry. When everything is closed it ends, also when a library's thread has not (a model that is
    still being loaded would hold up the end of a daemon for as long as it takes)."""
    code = main()
    if threading.active_count() == 1:
        sys.exit(code)
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    run_program()
