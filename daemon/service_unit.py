"""The systemd user unit: its text, where it goes, and the commands that switch it on and off.

What must stay true: pure but for `write_unit` and `remove_unit`; the exit codes that no restart can mend
(wrong configuration, another daemon holds the state) are not restarted.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ragd.daemon.errors import StateLockedError, UsageError

UNIT_NAME = "ragd.service"

_UNIT = """\
[Unit]
Description=ragd: a local index of your folders for assistants
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=exec
ExecStart={command}
Restart=on-failure
RestartSec=10
RestartPreventExitStatus={final_codes}
KillMode=mixed
TimeoutStopSec=20
UMask=0077
OOMPolicy=continue
CPUWeight=20
IOWeight=20
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
SystemCallArchitectures=native

[Install]
WantedBy=default.target
"""


def unit_text(command: Sequence[str]) -> str:
    """The unit that runs `command`. Raises ValueError for an argument that a unit cannot hold."""
    final_codes = f"{UsageError.exit_code} {StateLockedError.exit_code}"
    return _UNIT.format(command=" ".join(map(quoted, command)), final_codes=final_codes)


def run_command(config_file: Path | None, program: str = sys.executable) -> list[str]:
    """`ragd run` with this interpreter and this configuration."""
    option = ["--config", str(config_file)] if config_file is not None else []
    return [program, "-m", "ragd.daemon.cli.main", *option, "run"]


def quoted(argument: str) -> str:
    """One argument of ExecStart: systemd expands % and $, and reads quotes and backslashes."""
    if "\n" in argument or "\0" in argument:
        raise ValueError(f"{argument!r} cannot stand in a systemd unit")
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return escaped if re.fullmatch(r"[\w@%+=:,./-]+", argument) else f'"{escaped}"'


def unit_file(config_home: str | None, home: Path) -> Path:
    """Where a user's units are: $XDG_CONFIG_HOME/systemd/user, else ~/.config/systemd/user."""
    base = Path(config_home) if config_home and os.path.isabs(config_home) else home / ".config"
    return base / "systemd" / "user" / UNIT_NAME


def write_unit(file: Path, text: str) -> None:
    """Writes it, all or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(".new")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, file)


def remove_unit(file: Path) -> bool:
    """Whether there was one."""
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    return True
