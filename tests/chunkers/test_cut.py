"""The pipeline as a whole: types, recipes, what is skipped, what stays equal."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from types import SimpleNamespace

import pytest

from ragd.chunkers.cut import cut, recipe_of
from ragd.chunkers.detect import type_of
from ragd.chunkers.ids import IdMaker
from ragd.chunkers.records import CutSettings, ModelBudget, SourceFile
from ragd.chunkers.registry import PARSER_VERSIONS, STRATEGY_VERSIONS, TYPES, chunker_names, parser, strategy
from ragd.chunkers.tokens import PlainCounter

_TEXT = "# Title\n\n" + "Some words of a paragraph. " * 80 + "\n\n## Next\n\n- a\n- b\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.md", "", "markdown"),
        ("README.MARKDOWN", "", "markdown"),
        ("a.txt", "# x", "text"),
        ("a.rst", "", "rst"),
        ("LICENSE", "words", "text"),
        ("unknown.zzz", "words", "text"),
    ],
)
def test_types_by_name_and_content(name: str, text: str, expected: str) -> None:
    assert type_of(name, text) == expected


def test_every_type_names_a_parser_and_a_strategy_that_exist() -> None:
    for entry in TYPES.values():
        assert entry.parser in PARSER_VERSIONS
        assert entry.strategy in STRATEGY_VERSIONS
    assert all(callable(parser(name)) for name in PARSER_VERSIONS)
    assert all(callable(strategy(name)) for name in STRATEGY_VERSIONS)
    assert chunker_names()[0] == "auto"


def test_fault_b8_binary_is_skipped_with_a_reason_and_empty_is_indexed(tools: SimpleNamespace) -> None:
    binary = tools.cut(random.Random(1).randbytes(4096), "bin.txt")
    assert (binary.skipped, binary.chunks) == ("binary", ())
    assert tools.cut(b"\x89PNG\r\n\x1a\n" + bytes(50), "a.md").skipped == "binary"
    for blank in (b"", b" \n\t\r\n", "\ufeff".encode(), "\u2003\u00a0".encode()):
        empty = tools.cut(blank, "empty.txt")
        assert (empty.skipped, empty.chunks) == (None, ())


@pytest.mark.parametrize("name", ["a.css", "a.rb"])
def test_minified_code_is_skipped_and_long_lines_of_prose_or_data_are_not(tools: SimpleNamespace, name: str) -> None:
    line = "a{b:c}" * 3000
    assert tools.cut(line, name).skipped == "generated"
    assert tools.cut(line, "a.txt").skipped is None
    assert tools.cut(line, "a.json").skipped is None
    assert tools.cut("a{\n  b:c\n}\n" * 300, name).skipped is None


def test_recipes_are_known_without_reading(tools: SimpleNamespace) -> None:
    counter, budget = PlainCounter(special_tokens=2), ModelBudget()
    for name in ("a.md", "a.txt", "noext", "x.zzz"):
        result = tools.cut(_TEXT, name)
        assert result.recipe == recipe_of(name.encode(), CutSettings(), counter.fingerprint, budget)
    skipped = tools.cut(bytes(100) + b"\x01" * 100, "a.txt")
    assert skipped.recipe == recipe_of(b"a.txt", CutSettings(), counter.fingerprint, budget)


def test_a_recipe_changes_with_what_chunks_depend_on() -> None:
    def recipe(path: bytes = b"a.md", tokenizer: str = "t", budget: ModelBudget | None = None, **keys: object) -> str:
        return recipe_of(path, CutSettings(**keys), tokenizer, budget or ModelBudget())  # type: ignore[arg-type]

    recipes = [
        recipe(),
        recipe(b"a.txt"),
        recipe(b"noext"),
        recipe(tokenizer="u"),
        recipe(budget=ModelBudget(512)),
        recipe(budget=ModelBudget(256, "passage: ")),
        recipe(target_tokens=300),
        recipe(max_tokens=300),
        recipe(overlap_ratio=0.0),
        recipe(prefix=False),
        recipe(chunker="paragraph"),
    ]
    assert len(set(recipes)) == len(recipes)
    assert recipe(b"x/a.md") == recipe(b"b.md")


def test_a_chunker_that_fits_no_type_is_replaced_with_a_warning(tools: SimpleNamespace) -> None:
    result = tools.cut(_TEXT, "a.md", chunker="no-such")
    assert result.chunker == "structure"
    assert len(result.warnings) == 1
    assert tools.cut(_TEXT, "a.md", chunker="paragraph").chunker == "paragraph"
    assert tools.cut(_TEXT, "a.md", chunker="paragraph").warnings == ()


def test_prefix_can_be_switched_off(tools: SimpleNamespace) -> None:
    assert any(chunk.prefix for chunk in tools.cut(_TEXT).chunks)
    assert not any(chunk.prefix for chunk in tools.cut(_TEXT, prefix=False).chunks)


def test_law_ids_depend_on_root_path_kind_text_and_order_only() -> None:
    def one(root: str = "r", path: bytes = b"p", kind: str = "k", text: str = "t") -> str:
        return IdMaker(root, path).chunk_id(kind, text)

    ids = {one(), one("x"), one(path=b"x"), one(kind="x"), one(text="x"), one("rp", b""), one(kind="kt", text="")}
    assert len(ids) == 7
    maker = IdMaker("r", b"p")
    assert maker.chunk_id("k", "t") == one()
    assert maker.chunk_id("k", "t") != one()
    assert len(one()) == 32
    assert maker.parent_id("section", ("a", "b"), "b") != maker.parent_id("section", ("a",), "b")


def test_a_path_that_is_not_utf8_is_cut_like_any_other() -> None:
    source = SourceFile(b"words zqx", "r", b"dir/caf\xe9.md")
    result = cut(source, CutSettings(), PlainCounter(), ModelBudget())
    assert result.title == "caf\\xe9"
    assert result.chunks[0].prefix == "caf\\xe9\n"


def test_law_determinism_over_processes_and_hash_seeds() -> None:
    code = (
        "from ragd.chunkers.cut import cut\n"
        "from ragd.chunkers.records import *\n"
        "from ragd.chunkers.tokens import PlainCounter\n"
        "import sys, hashlib\n"
        "data = sys.stdin.buffer.read()\n"
        "result = cut(SourceFile(data, 'root', b'a.md'), CutSettings(), PlainCounter(2), ModelBudget())\n"
        "print(hashlib.sha256(repr(result).encode()).hexdigest())\n"
    )
    text = (_TEXT + "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 200).encode()
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=text,
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C"},
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(seen) == 1
