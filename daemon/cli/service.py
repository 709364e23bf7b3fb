"""`ragd service`: start the daemon with the session, by a systemd user unit."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragd.daemon import service_unit
from ragd.daemon.cli.invocation import Invocation, common_options
from ragd.daemon.cli.output import Answer, printable, show, write_text
from ragd.daemon.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from rich.console import Console


@click.group("service", short_help="Start the daemon with your session.")
def command() -> None:
    """Start the daemon with your session, by a systemd user unit."""


@command.command("install")
@click.option("--dry-run", is_flag=True, help="Only print the unit.")
@common_options
@click.pass_obj
def install(invocation: Invocation, dry_run: bool) -> None:
    """Write the unit for this configuration, switch it on and start it."""
    config = invocation.config(must_exist=True)
    text = service_unit.unit_text(service_unit.run_command(config.file))
    file = _unit_file()
    if dry_run and not invocation.as_json:
        write_text(text)
        return
    if not dry_run:
        systemctl = _systemctl()
        service_unit.write_unit(file, text)
        _call(systemctl, "daemon-reload")
        _call(systemctl, "enable", service_unit.UNIT_NAME)
        _call(systemctl, "restart", service_unit.UNIT_NAME)
    show(invocation, {"unit": str(file), "text": text, "installed": not dry_run}, _installed)


def _installed(console: Console, answer: Answer) -> None:
    console.print(f"Wrote {answer['unit']} and started it.")
    console.print("`journalctl --user -u ragd` shows its log; `loginctl enable-linger` keeps it running after log-out.")


@command.command("uninstall")
@common_options
@click.pass_obj
def uninstall(invocation: Invocation) -> None:
    """Stop the daemon, switch the unit off and remove it. The index and the configuration stay."""
    file = _unit_file()
    if not file.exists():
        raise NotFoundError(f"There is no unit {file}.")
    systemctl = _systemctl()
    _call(systemctl, "disable", "--now", service_unit.UNIT_NAME)
    service_unit.remove_unit(file)
    _call(systemctl, "daemon-reload")
    show(
        invocation,
        {"unit": str(file), "installed": False},
        lambda console, _: console.print(f"Removed {file}."),
    )


@command.command("status")
@common_options
@click.pass_obj
def status(invocation: Invocation) -> None:
    """Say whether the unit is there, switched on and running."""
    file = _unit_file()
    systemctl = _systemctl()
    answer = {
        "unit": str(file),
        "installed": file.exists(),
        "enabled": _word(systemctl, "is-enabled"),
        "active": _word(systemctl, "is-active"),
    }
    show(invocation, answer, _status)


def _status(console: Console, answer: Answer) -> None:
    console.print(f"{answer['unit']}: {'installed' if answer['installed'] else 'not installed'}")
    console.print(printable(f"  {answer['enabled']}, {answer['active']}"))


def _unit_file() -> Path:
    return service_unit.unit_file(os.environ.get("XDG_CONFIG_HOME"), Path.home())


def _systemctl() -> str:
    found = shutil.which("systemctl")
    if found is None:
        raise UsageError(
            "There is no systemctl on this machine. `ragd service install --dry-run` prints the unit; "
            "any other supervisor can run `ragd run`."
        )
    return found


def _call(systemctl: str, *arguments: str) -> None:
    done = subprocess.run([systemctl, "--user", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UsageError(
            f"`systemctl --user {' '.join(arguments)}` failed: {done.stderr.strip() or done.stdout.strip()}"
        )


def _word(systemctl: str, question: str) -> str:
    """systemctl's one-word answer; its exit code only repeats it."""
    done = subprocess.run(
        [systemctl, "--user", question, service_unit.UNIT_NAME], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or done.stderr.strip() or "unknown"
