"""Makes the kit beside it importable, and runs a daemon on the sample folder for the examples."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

for _name in ("pages_kit", "garden_home"):
    if _name not in sys.modules:
        spec = importlib.util.spec_from_file_location(_name, Path(__file__).with_name(f"{_name}.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[_name] = module
        spec.loader.exec_module(module)

from garden_home import GardenHome  # noqa: E402 - it is importable only now


@pytest.fixture(scope="session")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GardenHome]:
    """A home with the sample folder, and a daemon on it with the deterministic test embedder."""
    with GardenHome(tmp_path_factory.mktemp("home"), model="hash:64") as home:
        yield home


@pytest.fixture
def garden_with_model(tmp_path: Path) -> Iterator[GardenHome]:
    """The same with the default model."""
    with GardenHome(tmp_path, model=None) as home:
        yield home
