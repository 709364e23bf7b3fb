"""Fixtures of the tests of reading; makes `reading_kit` importable under its unique name."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_KIT = Path(__file__).with_name("reading_kit.py")

if "reading_kit" not in sys.modules:
    spec = importlib.util.spec_from_file_location("reading_kit", _KIT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reading_kit"] = module
    spec.loader.exec_module(module)

from reading_kit import World  # noqa: E402 - it is importable only now


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A store with one root, `notes`, and nothing in it."""
    made = World(tmp_path / "state")
    yield made
    made.close()
