"""What every command knows: which configuration, and whether it answers in JSON. Both may stand before or
after it.

What must stay true: nothing heavy is imported here; a command that does not need the configuration does not
read it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ragd.daemon.config import Config

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(slots=True)
class Invocation:
    """One run of the command line."""

    config_file: str | None = None
    as_json: bool = False

    def config(self, *, must_exist: bool = False) -> Config:
        """Raises UsageError with every problem; with `must_exist` also when there is no file at all."""
        from ragd.daemon.config import default_config_file, find_config, load_config
        from ragd.daemon.errors import UsageError

        file = find_config(self.config_file, os.environ)
        if file is None and must_exist:
            raise UsageError(
                f"There is no configuration yet ({default_config_file()}). `ragd init --root FOLDER` writes one."
            )
        return load_config(file)


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value:
        setattr(context.ensure_object(Invocation), str(parameter.name), value)


def common_options(command: Command) -> Command:
    """--config and --json."""
    command = click.option(
        "--json",
        "as_json",
        is_flag=True,
        expose_value=False,
        callback=_remember,
        help="Answer with one JSON object.",
    )(command)
    return click.option(
        "--config",
        "config_file",
        metavar="FILE",
        expose_value=False,
        callback=_remember,
        help="The configuration file.",
    )(command)


def path_for_asking(path: str) -> str:
    """A path of the command line as the daemon takes it: absolute, symbolic links left alone, bytes that are
    not UTF-8 written as \\xHH."""
    return os.fsencode(os.path.abspath(path)).decode("utf-8", "backslashreplace")
