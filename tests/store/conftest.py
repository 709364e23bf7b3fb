"""Fixtures of the store's tests; makes `store_kit` importable under its unique name."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_KIT = Path(__file__).with_name("store_kit.py")

if "store_kit" not in sys.modules:
    spec = importlib.util.spec_from_file_location("store_kit", _KIT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["store_kit"] = module
    spec.loader.exec_module(module)

from store_kit import House  # noqa: E402 - it is importable only now


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A state folder that does not exist yet."""
    return House(tmp_path / "state")
