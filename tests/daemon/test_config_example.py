"""The example configuration is the schema, written out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragd.daemon import config as config_module
from ragd.daemon.config import parse_config
from ragd.daemon.config_example import effective, example_toml, toml_value
from ragd.daemon.config_schema import RootTable, Settings

_COMMITTED = Path(__file__).parents[2] / "config.example.toml"


def test_the_committed_example_is_the_generated_one() -> None:
    assert _COMMITTED.read_text(encoding="utf-8") == example_toml()


def test_the_example_sets_nothing_but_the_root(tmp_path: Path) -> None:
    settings = parse_config(example_toml(), tmp_path / "config.toml").settings
    assert settings == Settings(root=(RootTable(path="~/notes"),))


def test_the_example_with_every_key_switched_on_is_valid_and_has_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_module, "_known_types", lambda: frozenset({"csv"}))
    text = re.sub(r"^# (\w+ = |\[+root\.rule|\[chunking\.)", r"\1", example_toml(), flags=re.MULTILINE)
    values = effective(parse_config(text, tmp_path / "config.toml").settings)
    defaults = effective(Settings())
    prompts = {"query_prompt": "query: ", "document_prompt": "passage: "}
    assert values["chunking"].pop("csv") == {"overlap_ratio": 0.0}
    assert {**values, "root": []} == {**defaults, "embedding": {**defaults["embedding"], **prompts}}
    (root,) = values["root"]
    assert root["rule"] == [{"glob": "meetings/**", "target_tokens": 500}]


def test_every_key_of_the_schema_is_in_the_example_with_a_description() -> None:
    lines = example_toml().splitlines()
    sections = {name: type(field.default) for name, field in Settings.model_fields.items() if name != "root"}
    for section in [*sections.values(), RootTable]:
        for key in section.model_fields:
            if key != "rule":
                assert section.model_fields[key].description
                assert any(re.match(rf"(# )?{key} = ", line) for line in lines), key
    assert max(map(len, lines)) <= 100


def test_several_roots_are_written_and_read_back(tmp_path: Path) -> None:
    paths = ("/a b/ü", '/quote"s', "/back\\slash", "/tab\t")
    roots = parse_config(example_toml(paths), tmp_path / "config.toml").roots
    assert tuple(root.path for root in roots) == paths


def test_a_path_that_toml_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="not UTF-8"):
        toml_value("/bad\udcff")
