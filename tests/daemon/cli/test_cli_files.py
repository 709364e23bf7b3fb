"""`ragd init`, `ragd config` and `ragd preview`: the commands that need no backend."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ragd.daemon import errors
from ragd.daemon.cli.invocation import Invocation
from ragd.daemon.cli.preview import parse_settings
from ragd.daemon.config import load_config
from ragd.daemon.config_example import example_toml

Ask = Callable[..., tuple[int, str, str]]


def test_init_writes_a_configuration_that_is_valid(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    file = tmp_path / "xdg-config/ragd/config.toml"
    code, out, _ = ask("init", "--root", str(tmp_path / "notes"), "--root", str(tmp_path / "b"), configured=False)
    assert code == 0
    assert str(file) in out
    assert [root.path for root in load_config(file).roots] == [str(tmp_path / "notes"), str(tmp_path / "b")]
    assert not list(file.parent.glob(".config-*"))


def test_init_does_not_overwrite_without_force(ask: Ask, config_file: Path, tmp_path: Path) -> None:
    before = config_file.read_bytes()
    code, _, err = ask("init")
    assert (code, config_file.read_bytes()) == (2, before)
    assert "--force" in err
    assert ask("init", "--force")[0] == 0
    assert config_file.read_text() == example_toml()
    assert tmp_path.exists()


def test_init_refuses_what_would_be_refused_when_read(ask: Ask, tmp_path: Path) -> None:
    notes = str(tmp_path / "notes")
    code, _, err = ask("init", "--root", notes, "--root", f"{notes}/", "--force")
    assert code == 2
    assert "is the folder of root[0] already" in err


def test_config_show_is_valid_toml_that_says_the_same(ask: Ask, config_file: Path, tmp_path: Path) -> None:
    config_file.write_text(
        '[store]\npath = "state"\n[chunking.markdown]\nmax_tokens = 90\n'
        '[[root]]\npath = "notes"\nlabels = ["l"]\n[[root.rule]]\nglob = "*"\nprefix = false\n'
    )
    shown = tmp_path / "shown.toml"
    shown.write_text(ask("config", "show")[1])
    one, other = load_config(config_file), load_config(shown)
    assert (one.roots, one.state_dir, one.socket_path) == (other.roots, other.state_dir, other.socket_path)
    assert one.cut_settings(one.roots[0], "a.md") == other.cut_settings(other.roots[0], "a.md")


def test_config_check_without_a_file_says_how_to_get_one(ask: Ask) -> None:
    code, _, err = ask("config", "check", configured=False)
    assert code == 2
    assert "ragd init" in err


def test_settings_of_preview_are_read_as_toml_or_text() -> None:
    given = [
        "max_tokens=90",
        "prefix=false",
        "chunker=paragraph",
        "overlap_ratio = 0.1",
        'x="a=b"',
        "y=1\nz=2",
    ]
    assert parse_settings(given) == {
        "max_tokens": 90,
        "prefix": False,
        "chunker": "paragraph",
        "overlap_ratio": 0.1,
        "x": "a=b",
        "y": "1\nz=2",
    }
    with pytest.raises(errors.UsageError, match="KEY=VALUE"):
        parse_settings(["max_tokens"])


def test_preview_cuts_a_file_with_the_settings_in_force(ask: Ask, config_file: Path) -> None:
    file = config_file.parent / "notes/a.txt"
    file.write_text("A sentence of some words that stands here. " * 60 + "\n")
    code, out, _ = ask("preview", str(file), "--json")
    chunks = json.loads(out)["chunks"]
    assert code == 0
    assert "".join("".join(chunk["text"] for chunk in chunks).split()) == "".join(file.read_text().split())
    finer = json.loads(ask("preview", str(file), "--set", "max_tokens=60", "--json")[1])["chunks"]
    assert len(finer) > len(chunks)
    assert max(chunk["tokens"] for chunk in finer) <= 62, "special tokens come on top"
    assert "lines 1-1" in ask("preview", str(file))[1]


def test_preview_takes_no_unknown_setting(ask: Ask, config_file: Path) -> None:
    file = config_file.parent / "notes/a.txt"
    file.write_text("words\n")
    code, _, err = ask("preview", str(file), "--set", "max_token=60", "--set", 'overlap_ratio="x"')
    assert code == 2
    assert "max_token: unknown key; did you mean max_tokens?" in err
    assert "overlap_ratio: must be a number" in err
    code, _, err = ask("preview", str(file), "--chunker", "paragraf")
    assert code == 2
    assert "did you mean paragraph?" in err


def test_preview_of_what_is_no_file(ask: Ask, tmp_path: Path) -> None:
    assert ask("preview", str(tmp_path / "none.txt"))[0] == 9
    assert ask("preview", str(tmp_path))[0] == 2
    os.mkfifo(tmp_path / "pipe")
    code, _, err = ask("preview", str(tmp_path / "pipe"))
    assert code == 2
    assert "not_regular" in err


def test_preview_of_a_link_is_the_preview_of_its_target(ask: Ask, config_file: Path) -> None:
    file = config_file.parent / "notes/a.txt"
    file.write_text("words\n")
    (config_file.parent / "link.txt").symlink_to(file)
    one = json.loads(ask("preview", str(file), "--json")[1])
    other = json.loads(ask("preview", str(config_file.parent / "link.txt"), "--json")[1])
    assert one["chunks"] == other["chunks"]


def test_an_invocation_without_a_configuration_has_the_defaults(config_file: Path, tmp_path: Path) -> None:
    assert config_file.exists()
    assert Invocation().config().state_dir == tmp_path / "xdg-data/ragd"
