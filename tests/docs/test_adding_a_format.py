"""docs/adding-a-format.md, followed word by word: its files and entries make a format that works."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType

import pytest
from pages_kit import HOUSE, Fence, fences, text_of

import ragd.chunkers.parsers
import ragd.chunkers.strategies
from ragd.chunkers import detect, registry
from ragd.chunkers.cut import cut, recipe_of
from ragd.chunkers.records import Cut, CutSettings, ModelBudget, SourceFile
from ragd.chunkers.tokens import PlainCounter

PAGE = HOUSE / "docs" / "adding-a-format.md"
HERE = [fence for fence in fences("python", "diff") if fence.page == PAGE]
FILES = {fence.marker.removeprefix("file: "): fence.body for fence in HERE if fence.marker.startswith("file: ")}
ENTRIES = [fence for fence in HERE if fence.marker.startswith("entries: ")]
SAYINGS = "\n%\nA watched pot never boils.\n%  \nTwo lines,\r\none saying.\n%\n\n%\nÄußerst kurz"
PLAIN = PlainCounter(special_tokens=2)


def _entries(fence: Fence) -> list[tuple[str, dict[str, object]]]:
    """The tables that a diff adds to, with what it adds."""
    source = text_of(HOUSE / fence.marker.removeprefix("entries: "))
    added: list[tuple[str, list[str]]] = []
    for line in fence.body.splitlines():
        if line.startswith("+"):
            added[-1][1].append(line[1:])
        else:
            assert f"\n{line[1:]}\n" in source, f"{fence.marker} has no line {line[1:]!r}"
            added.append((line[1:].partition(" ")[0].rstrip(":"), []))
    names = {"TypeEntry": registry.TypeEntry}
    return [(table, eval("{" + "\n".join(lines) + "}", dict(names))) for table, lines in added]


@pytest.fixture
def with_the_new_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages: dict[str, ModuleType] = {
        "chunkers/parsers": ragd.chunkers.parsers,
        "chunkers/strategies": ragd.chunkers.strategies,
    }
    for name, body in FILES.items():
        folder, _, file_name = name.rpartition("/")
        place = tmp_path / folder
        place.mkdir(parents=True, exist_ok=True)
        (place / file_name).write_text(body, encoding="utf-8")
        monkeypatch.setattr(packages[folder], "__path__", [*packages[folder].__path__, str(place)])
        monkeypatch.delitem(__import__("sys").modules, f"ragd.{name[:-3].replace('/', '.')}", raising=False)
    modules = {"chunkers/detect.py": detect, "chunkers/registry.py": registry}
    for fence in ENTRIES:
        for table, entries in _entries(fence):
            for key, value in entries.items():
                monkeypatch.setitem(getattr(modules[fence.marker.removeprefix("entries: ")], table), key, value)


def _cut(text: str, name: bytes = b"wisdom.fortune", max_tokens: int = 256) -> Cut:
    source = SourceFile(text.encode(), "books", name)
    return cut(source, CutSettings(), PLAIN, ModelBudget(max_tokens=max_tokens))


@pytest.mark.usefixtures("with_the_new_format")
def test_the_new_format_is_cut_as_the_page_says() -> None:
    made = _cut(SAYINGS)
    assert (made.type, made.chunker, made.title) == ("sayings", "sayings", "wisdom")
    assert [chunk.text for chunk in made.chunks] == [
        "A watched pot never boils.",
        "Two lines,\r\none saying.",
        "Äußerst kurz",
    ]
    assert [(chunk.start_line, chunk.end_line) for chunk in made.chunks] == [(3, 3), (5, 6), (10, 10)]
    assert {dropped.reason for dropped in made.dropped} == {"markup"}
    assert len({chunk.id for chunk in made.chunks}) == 3


@pytest.mark.usefixtures("with_the_new_format")
@pytest.mark.parametrize("text", [SAYINGS, "", "%", "%\n%", "no separator", "%%\n%x\n" * 50, "word " * 900])
def test_the_new_format_keeps_the_laws(text: str) -> None:
    made = _cut(text, max_tokens=64)
    data = text.encode()
    covered = bytearray(len(data))
    for chunk in made.chunks:
        assert chunk.tokens <= 64
        assert b"".join(data[start:stop] for start, stop in chunk.spans).decode() == chunk.text
        for start, stop in chunk.spans:
            covered[start:stop] = b"\1" * (stop - start)
    for dropped in made.dropped:
        covered[dropped.span[0] : dropped.span[1]] = b"\1" * (dropped.span[1] - dropped.span[0])
    left = bytes(byte for byte, seen in zip(data, covered, strict=True) if not seen)
    assert left.strip() == b""


@pytest.mark.usefixtures("with_the_new_format")
def test_a_raised_version_cuts_only_its_files_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def recipes() -> list[str]:
        return [recipe_of(name, CutSettings(), "t", ModelBudget()) for name in (b"a.fortune", b"a.md")]

    before = recipes()
    monkeypatch.setitem(registry.PARSER_VERSIONS, "sayings", 2)
    after = recipes()
    assert before[0] != after[0]
    assert before[1] == after[1]


def test_the_example_is_no_format_yet() -> None:
    assert detect.type_by_name("wisdom.fortune") is None
    for name, body in FILES.items():
        assert not (HOUSE / name).exists()
        ast.parse(body)
