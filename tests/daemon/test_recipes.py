"""What the plan expects of a file is what its cut records."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragd.chunkers.parsers.extensions import LANGUAGE_BY_EXTENSION, NAMES
from ragd.chunkers.recipe import recipe_of
from ragd.chunkers.records import ModelBudget
from ragd.daemon.config import parse_config
from ragd.daemon.recipes import Recipes, Tokenizer

ODD = [
    "README",
    "a.md",
    "A.MD",
    "CMakeLists.txt",
    "notes.txt",
    ".hidden",
    "Dockerfile",
    "dockerfile.dev",
    "x.",
    "x.y.z",
]


@pytest.mark.parametrize("rule", ["", '[[root.rule]]\nglob = "special/**"\ntarget_tokens = 100\n'])
def test_a_recipe_taken_from_the_cache_is_the_one_computed_afresh(tmp_path: Path, rule: str) -> None:
    config = parse_config(f'[[root]]\nname = "r"\npath = "{tmp_path}"\n{rule}', None)
    budget = ModelBudget(256)
    recipes = Recipes(config, Tokenizer("tokenizer", budget))
    of_root = recipes.of_root("r")
    names = [*ODD, *NAMES, *(f"f.{extension}" for extension in LANGUAGE_BY_EXTENSION)]
    for folder in ("", "special/", "other/deep/"):
        for name in names:
            path = (folder + name).encode()
            assert of_root(path) == recipe_of(path, recipes.settings("r", path), "tokenizer", budget), path
    changed = of_root(b"special/a.md") != of_root(b"other/a.md")
    assert changed is bool(rule)
