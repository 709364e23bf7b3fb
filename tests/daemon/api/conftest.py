"""Fixtures of the tests of the API; makes `api_kit` importable under its unique name."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_KIT = Path(__file__).with_name("api_kit.py")

if "api_kit" not in sys.modules:
    spec = importlib.util.spec_from_file_location("api_kit", _KIT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["api_kit"] = module
    spec.loader.exec_module(module)

from api_kit import FakeBackend  # noqa: E402 - it is importable only now


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend()
