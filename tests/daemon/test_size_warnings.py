"""Sizes that are more than the model takes are said at the start. That they are never reached is a law of every cut."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ragd.daemon.config import parse_config
from ragd.daemon.engine import Engine
from ragd.daemon.opening import held_model

_CONFIG = """
[store]
path = "{state}"
[embedding]
model = "hash:64"
[[root]]
path = "{folder}"
name = "notes"
"""


def test_fault_e3_a_size_over_the_models_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = _CONFIG.format(state=tmp_path / "state", folder=tmp_path)
    sizes = (
        "[chunking]\ntarget_tokens = 1500\nmax_tokens = 2000\n[chunking.python]\nmax_tokens = 100\n"
        "[chunking.markdown]\nmax_tokens = 900\n"
    )
    config = parse_config(f'{sizes}{text}[[root.rule]]\nglob = "*.log"\ntarget_tokens = 300\n', None)
    with caplog.at_level(logging.WARNING):
        engine = Engine.open(config, inline_parsing=True)
    try:
        said = [record.getMessage() for record in caplog.records]
        assert [message.partition(",")[0] for message in said[:3]] == [
            "chunking: target_tokens is 1500",
            "chunking: max_tokens is 2000",
            "chunking.markdown: max_tokens is 900",
        ]
        assert said[3].startswith("root notes, rule *.log: target_tokens is 300")
        assert all("hash:64 takes 256 tokens" in message for message in said)
    finally:
        engine.close()


def test_what_fits_is_not_talked_about(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = _CONFIG.format(state=tmp_path / "state", folder=tmp_path)
    for sizes in ("", "[chunking]\ntarget_tokens = 256\nmax_tokens = 256\n"):
        held_model(parse_config(sizes + text, None))
    assert caplog.records == []
