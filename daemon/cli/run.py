"""`ragd run`: the daemon in the foreground, with what it does on the terminal."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragd.daemon.cli.invocation import Invocation, common_options
from ragd.daemon.cli.output import say
from ragd.daemon.errors import UsageError

if TYPE_CHECKING:
    from ragd.daemon.config import Config


@click.command("run", short_help="Run the daemon in the foreground.")
@click.argument("folders", nargs=-1, metavar="[DIR]...")
@click.option("--sample", is_flag=True, help="Without a configuration: try ragd on a few files that come with it.")
@common_options
@click.pass_obj
def command(invocation: Invocation, folders: tuple[str, ...], sample: bool) -> int:
    """Run the daemon in the foreground until Ctrl-C.

    With DIRs: they become roots of the configuration, which is written if there is none.
    """
    from ragd.daemon.cli.run_view import open_view
    from ragd.daemon.run import run_daemon

    config = _config(invocation, [_folder(folder) for folder in folders], sample=sample)
    for warning in config.warnings:
        say(f"ragd: {warning}")
    with open_view(sys.stderr, ask_command(config, os.environ, sys.argv[0])) as view:
        _log_to(view.log_handler)
        return run_daemon(config, report=view.report)


def _folder(named: str) -> str:
    """A slip of the pen must not stay in the configuration; a disk that is away today is written there by hand."""
    folder = os.path.abspath(named)
    if not os.path.isdir(folder):
        what = "is no folder" if os.path.lexists(folder) else "is not there"
        raise UsageError(f"{folder} {what}; nothing was written to the configuration")
    return folder


def _config(invocation: Invocation, folders: list[str], *, sample: bool) -> Config:
    """The configuration to run with, written or extended where the command line asks for it."""
    from ragd.daemon.config import config_to_write
    from ragd.daemon.config_write import with_roots, write_new
    from ragd.daemon.sample_folder import copy_sample, sample_folder

    file = config_to_write(invocation.config_file, os.environ)
    if not file.exists():
        if folders or sample:
            config = write_new(file, folders or [str(copy_sample(sample_folder()))])
            say(f"ragd: wrote the configuration {file}")
            return config
        return invocation.config(must_exist=True)
    config, added = with_roots(file, folders, str(sample_folder()))
    for folder in added:
        say(f"ragd: {folder} is a root now, in {file}")
    if sample:
        say(f"ragd: running your configuration {file}")
    return config


def ask_command(config: Config, environment: os._Environ[str] | dict[str, str], program: str) -> str:
    """What to type in a second terminal to ask this daemon."""
    from ragd.daemon.config import find_config

    name = "ragd" if _is_on_path(program, environment.get("PATH", "")) else _shown_program(program)
    default = find_config(None, {})
    option = "" if config.file == default or config.file is None else f" --config {shlex.quote(str(config.file))}"
    return f'{name}{option} search "..."'


def _is_on_path(program: str, search_path: str) -> bool:
    import shutil

    found = shutil.which("ragd", path=search_path)
    return found is not None and os.path.realpath(found) == os.path.realpath(program)


def _shown_program(program: str) -> str:
    """As short as it works from the current folder: `.venv/bin/ragd` after `make run`."""
    if not program.endswith("ragd"):
        return f"{shlex.quote(sys.executable)} -m ragd.daemon.cli.main"
    path = Path(os.path.abspath(program))
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _log_to(handler: logging.Handler) -> None:
    """ragd's own news, and what its libraries warn of."""
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("ragd").setLevel(logging.DEBUG if os.environ.get("RAGD_DEBUG") else logging.INFO)
