"""The systemd user unit, and `ragd service` with a stand-in for systemctl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ragd.daemon.cli.main import main
from ragd.daemon.service_unit import quoted, run_command, unit_file, unit_text


def lines_of(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def test_the_unit_runs_this_interpreter_and_restarts_after_a_failure_with_limits() -> None:
    unit = lines_of(unit_text(run_command(Path("/etc/my ragd/config.toml"))))
    assert unit["ExecStart"] == f'{sys.executable} -m ragd.daemon.cli.main --config "/etc/my ragd/config.toml" run'
    assert unit["Restart"] == "on-failure"
    assert int(unit["StartLimitBurst"]) * int(unit["RestartSec"]) < int(unit["StartLimitIntervalSec"])
    assert int(unit["TimeoutStopSec"]) > 10
    assert unit["NoNewPrivileges"] == "yes"
    assert unit["UMask"] == "0077"


def test_fault_f12_no_restart_where_it_cannot_help() -> None:
    assert lines_of(unit_text(["x"]))["RestartPreventExitStatus"] == "2 4"


def test_without_a_file_the_unit_names_none() -> None:
    assert run_command(None, "/p") == ["/p", "-m", "ragd.daemon.cli.main", "run"]


@pytest.mark.parametrize(
    ("argument", "written"),
    [
        ("/usr/bin/x", "/usr/bin/x"),
        ("/a b", '"/a b"'),
        ("/100%", "/100%%"),
        ("/$HOME", '"/$$HOME"'),
        ('/q"\\', '"/q\\"\\\\"'),
        ("/ü", "/ü"),
        ("", '""'),
    ],
)
def test_arguments_are_quoted_as_systemd_reads_them(argument: str, written: str) -> None:
    assert quoted(argument) == written


def test_an_argument_with_a_line_break_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot stand"):
        quoted("/a\nExecStartPre=/bin/x")


def test_units_are_where_systemd_looks_for_them() -> None:
    assert unit_file(None, Path("/home/u")) == Path("/home/u/.config/systemd/user/ragd.service")
    assert unit_file("relative", Path("/home/u")) == Path("/home/u/.config/systemd/user/ragd.service")
    assert unit_file("/x", Path("/home/u")) == Path("/x/systemd/user/ragd.service")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "ragd.service"
    unit.write_text(unit_text(run_command(tmp_path / "a b%$.toml")))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", unit],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert [line for line in done.stderr.splitlines() if "ragd.service" in line] == []


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    file = tmp_path / "config.toml"
    file.write_text('[[root]]\npath = "."\n')
    return file


def fake_systemctl(tmp_path: Path, *, fails: bool = False) -> Path:
    """A systemctl that writes down what it was asked. Returns that file."""
    program, log = tmp_path / "bin/systemctl", tmp_path / "calls"
    program.parent.mkdir()
    answer = "echo Failed to connect to bus >&2; exit 1" if fails else "echo active"
    program.write_text(f'#!/bin/sh\necho "$@" >> {log}\n{answer}\n')
    program.chmod(0o755)
    return log


def test_install_writes_the_unit_and_starts_it_and_uninstall_takes_it_away(
    config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = fake_systemctl(tmp_path)
    unit = tmp_path / "xdg/systemd/user/ragd.service"
    assert main(["--config", str(config_file), "service", "install"]) == 0
    assert unit.read_text() == unit_text(run_command(config_file))
    assert main(["service", "status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {
        "unit": str(unit),
        "installed": True,
        "enabled": "active",
        "active": "active",
    }
    assert main(["service", "uninstall"]) == 0
    assert not unit.exists()
    assert main(["service", "uninstall"]) == 9
    assert calls.read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable ragd.service",
        "--user restart ragd.service",
        "--user is-enabled ragd.service",
        "--user is-active ragd.service",
        "--user disable --now ragd.service",
        "--user daemon-reload",
    ]


def test_a_dry_run_prints_the_unit_and_does_nothing(
    config_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", str(config_file), "service", "install", "--dry-run"]) == 0
    assert capfd.readouterr().out == unit_text(run_command(config_file))
    assert not (tmp_path / "xdg").exists()


def test_without_systemctl_it_says_what_to_do(
    config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", str(config_file), "service", "install"]) == 2
    assert "There is no systemctl" in capsys.readouterr().err
    assert not (tmp_path / "xdg").exists()


def test_what_systemctl_says_when_it_fails_is_handed_on(
    config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_systemctl(tmp_path, fails=True)
    assert main(["--config", str(config_file), "service", "install"]) == 2
    assert "Failed to connect to bus" in capsys.readouterr().err


def test_a_wrong_configuration_is_not_installed(config_file: Path, tmp_path: Path) -> None:
    fake_systemctl(tmp_path)
    config_file.write_text("[watch]\npath = 1\n")
    assert main(["--config", str(config_file), "service", "install"]) == 2
    assert not (tmp_path / "xdg").exists()
