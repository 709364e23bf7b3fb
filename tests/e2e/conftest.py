"""Fixtures of the tests with real processes; makes the kits beside it importable.

Whatever a test starts, and whatever that starts, has ended when the test is over.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

for _name in ("docs_kit", "garden_kit", "process_kit", "ragd_kit", "site_kit", "truth_kit", "library_kit"):
    if _name not in sys.modules:
        spec = importlib.util.spec_from_file_location(_name, Path(__file__).with_name(f"{_name}.py"))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[_name] = module
        spec.loader.exec_module(module)

from ragd_kit import Ragd  # noqa: E402 - it is importable only now


@pytest.fixture
def new_ragd(tmp_path: Path) -> Iterator[Callable[[], Ragd]]:
    """Makes installations: each with folders and processes of its own."""
    made: list[Ragd] = []

    def make() -> Ragd:
        made.append(Ragd(tmp_path / f"ragd{len(made)}"))
        return made[-1]

    yield make
    for ragd in made:
        ragd.clear_away()


@pytest.fixture
def ragd(new_ragd: Callable[[], Ragd]) -> Ragd:
    """One installation with the hash embedder and one empty root `docs`; not started."""
    made = new_ragd()
    made.configure()
    return made
