"""Source code: the laws of code chunks on real files, on samples of every language, and on what is left of them
after somebody typed in the middle of it."""

from __future__ import annotations

import ast
import random
import sysconfig
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragd.chunkers.document import Block
from ragd.chunkers.parsers import code, layout
from ragd.chunkers.parsers.extensions import GRAMMAR_LANGUAGES, LAYOUT_LANGUAGES, language_by_name
from ragd.chunkers.parsers.languages import GRAMMARS, language_of
from ragd.chunkers.records import Cut
from ragd.chunkers.tokens import ModelTokenCounter

SAMPLES = Path(__file__).parent / "samples"
NAMES = sorted(path.name for path in SAMPLES.iterdir() if path.name.lower().startswith("stock."))
CODE_KINDS = {"code-def", "code-part", "module-header"}


def sample(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def installed(pattern: str, count: int, folder: str) -> list[Path]:
    """Real files of this interpreter's installation, the same ones each time."""
    found = sorted(path for path in Path(sysconfig.get_path(folder)).rglob(pattern) if path.stat().st_size < 60_000)
    return random.Random(20).sample(found, min(count, len(found)))


def blocks_of(text: str, name: str) -> dict[str, Block]:
    """Every named block of a file by its name."""
    named: dict[str, Block] = {}
    stack = code.parse(text, name=name).blocks
    while stack:
        block = stack.pop()
        if block.symbol:
            named[block.symbol] = block
        stack.extend(block.children)
    return named


def holding(cut: Cut, words: str) -> list[int]:
    return [index for index, chunk in enumerate(cut.chunks) if words in chunk.text]


def test_fault_a7_offsets_are_characters_of_the_source(tools: SimpleNamespace) -> None:
    source = "# é→界\ndef pause():\n    return 1\n"
    cut = tools.laws(source.encode(), "a.py")
    (index,) = holding(cut, "def pause")
    chunk = cut.chunks[index]
    ((start, end),) = chunk.spans
    assert source.encode()[start:end].decode() == chunk.text == "def pause():\n    return 1"
    assert (chunk.symbol, chunk.start_line, chunk.end_line) == ("pause", 2, 3)
    assert chunk.section == ("pause",)
    assert chunk.language == "python"


def test_fault_a7_holds_for_wide_characters_in_every_place(tools: SimpleNamespace) -> None:
    body = "".join(f"def ünï{n}():\n    '''👩🏽‍🔬 {'é→界' * 40}'''\n    return '→'\n\n\n" for n in range(30))
    cut = tools.laws(body.encode(), "a.py", limit=128)
    for n in range(30):
        assert any(f"def ünï{n}():" in chunk.text and f"ünï{n}" in (chunk.symbol or "") for chunk in cut.chunks)


def test_fault_a8_equal_functions_have_places_of_their_own(tools: SimpleNamespace) -> None:
    method = "    def same(self):\n" + "".join(f"        self.value_{n} = compute({n})\n" for n in range(12))
    source = "".join(f"class C{n}:\n{method}\n\n" for n in range(5))
    cut = tools.laws(source.encode(), "a.py", limit=128)
    starts = [chunk.spans[0][0] for chunk in cut.chunks if "def same" in chunk.text]
    assert len(starts) == 5 == len({chunk.id for chunk in cut.chunks if "def same" in chunk.text})
    for n in range(5):
        (index,) = [i for i, chunk in enumerate(cut.chunks) if chunk.section[:1] == (f"C{n}",) and "same" in chunk.text]
        line = source[: source.index(f"class C{n}")].count("\n") + 1
        assert line <= cut.chunks[index].start_line <= line + 13


def test_fault_a10_long_names_never_push_out_the_body(tools: SimpleNamespace) -> None:
    names = [f"{'Nested' * 12}{depth}" for depth in range(6)]
    source = "".join(f"{'    ' * depth}class {name}:\n" for depth, name in enumerate(names))
    source += (
        "    " * 6
        + "zqx = 1\n"
        + "    " * 6
        + "def f(self):\n"
        + "".join("    " * 7 + f"self.attribute_{n} = call({n}, {n})\n" for n in range(40))
    )
    cut = tools.laws(source.encode(), "n" * 150 + ".py", limit=128)
    assert holding(cut, "zqx = 1")


@pytest.mark.parametrize("name", NAMES)
def test_fault_a14_line_ends_change_nothing(tools: SimpleNamespace, name: str) -> None:
    cuts = [tools.laws(sample(name).replace("\n", end).encode(), name, limit=128) for end in ("\n", "\r\n", "\r")]
    shapes = [
        [(c.id, c.kind, c.section, c.symbol, c.start_line, c.end_line, c.embedded_text) for c in cut.chunks]
        for cut in cuts
    ]
    assert len(shapes[0]) > 2
    assert shapes[0] == shapes[1] == shapes[2]


def test_fault_b10_a_minified_file_is_skipped(tools: SimpleNamespace) -> None:
    source = "".join(f"function f{n}(){{return {n}}}" for n in range(5000))
    cut = tools.laws(source.encode(), "app.min.js")
    assert cut.skipped == "generated"
    assert "minified" in cut.detail


def test_fault_b10_statements_on_one_long_line_are_told_apart(tools: SimpleNamespace) -> None:
    """Below the size from which a file is skipped, and with normal lines around it."""
    line = "".join(f"function f{n}(){{return {n}}}" for n in range(300))
    source = "// a\n" * 60 + line + "\n" + "let x = 1\n" * 60
    tracemalloc.start()
    cut = tools.laws(source.encode(), "app.js")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert cut.skipped is None
    assert sum(len(chunk.text) for chunk in cut.chunks) <= 1.5 * len(source)
    assert peak < 50_000_000
    on_the_line = [chunk for chunk in cut.chunks if chunk.start_line == chunk.end_line == 61]
    assert len(on_the_line) > 5
    assert all(chunk.text.startswith("function f") and chunk.text.endswith("}") for chunk in on_the_line)


def test_fault_g2_lines_are_those_of_the_file(tools: SimpleNamespace) -> None:
    lines = [f"VALUE_{n} = 'é→界 {n}'" for n in range(136)] + ["def zqx():", "    return 137"]
    lines += [f"LATER_{n} = {n}" for n in range(62)]
    cut = tools.laws("\r\n".join(lines).encode(), "a.py")
    (index,) = holding(cut, "def zqx")
    assert cut.chunks[index].start_line <= 137 <= cut.chunks[index].end_line
    for chunk in cut.chunks:
        assert "\r\n".join(lines[chunk.start_line - 1 : chunk.end_line]) == chunk.text


@pytest.mark.parametrize(
    ("name", "symbols"),
    [
        ("stock.py", "Shelf is_low Stock __init__ put take low report LOW"),
        ("stock.js", "Shelf parse constructor count take byArticle load report module.exports Shelf.prototype.isEmpty"),
        ("stock.ts", "Article Movement Unit Store append all Ledger constructor count take Report low isArticle"),
        ("stock.tsx", "Props Row StockTable"),
        ("Stock.java", "Stock LOW take iterator Unit plural Shelf Listener"),
        ("stock.go", "ErrEmpty Shelf Counter NewShelf Count Take Report Sum"),
        ("stock.rs", "LOW StockError Stock new put take low stock tests takes_what_is_there refuses_what_is_not"),
        ("stock.h", "stock_shelf_t stock_result_t stock_take stock_is_low stock_texts STOCK_NAME_MAX"),
        ("stock.cpp", "STOCK_CHECK Index find Stock::Stock Stock::take operator<< Unit stock example"),
    ],
)  # fmt: skip
def test_names_are_those_of_the_source(name: str, symbols: str) -> None:
    assert set(symbols.split()) <= set(blocks_of(sample(name), name))


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("stock.py", "@dataclasses.dataclass\nclass Shelf:", "return self.count < LOW"),
        ("stock.py", "    # Nothing is checked here: more is always welcome.\n    def put", "shelf.count += pieces"),
        ("stock.js", "  /** Take some pieces away; emits `low` when few are left. */\n  take", "#count\n  }"),
        ("stock.ts", "@Injectable({ scope: 'singleton' })\nexport class Ledger", "super();\n  }"),
        ("stock.tsx", "/** One line of the table. */\nfunction Row", "  );\n}"),
        ("Stock.java", "    /**\n     * Take pieces from a shelf.", 'no shelf for " + article);\n    }'),
        ("stock.go", "// Take removes pieces from the shelf.\nfunc (s *Shelf) Take", "return nil\n}"),
        ("stock.rs", "/// What can go wrong.\n#[derive(Debug, Clone, PartialEq)]\npub enum", "Unknown(String),\n}"),
        ("stock.rs", "    /// Take pieces from a shelf.\n    ///\n    /// # Errors", "Ok(*left)\n    }"),
        ("stock.h", "/* Take pieces from a shelf; the count", "uint32_t *left);"),
        ("stock.cpp", "/**\n * Take pieces from a shelf.\n */\nint Stock::take", "of_range(article);\n}"),
        ("stock.cpp", "template <typename Key>\nclass Index {", "std::vector<Key> keys_;\n};"),
    ],
)  # fmt: skip
def test_a_definition_stands_with_its_comments_and_decorators(
    tools: SimpleNamespace, model_counter: ModelTokenCounter, name: str, first: str, last: str
) -> None:
    cut = tools.laws(sample(name).encode(), name, counter=model_counter)
    (index,) = holding(cut, first)
    text = cut.chunks[index].text
    assert last in text[text.index(first) :]


@pytest.mark.parametrize("name", NAMES)
def test_chunks_are_whole_lines_and_know_their_language(tools: SimpleNamespace, name: str) -> None:
    lines = sample(name).split("\n")
    for limit in (48, 96, 256):
        cut = tools.laws(sample(name).encode(), name, limit=limit)
        for chunk in cut.chunks:
            assert chunk.kind in CODE_KINDS
            assert chunk.language == {"tsx": "tsx", "h": "c"}.get(name.rpartition(".")[2], cut.type)
            if limit == 256:
                assert "\n".join(lines[chunk.start_line - 1 : chunk.end_line]) == chunk.text


def test_law_19_every_definition_that_fits_is_whole(tools: SimpleNamespace, model_counter: ModelTokenCounter) -> None:
    """Python's own parser says where the definitions of real modules are."""
    checked = 0
    for path in installed("*.py", 25, "stdlib"):
        source = path.read_text(encoding="utf-8", errors="strict")
        cut = tools.laws(source.encode(), path.name, counter=model_counter)
        assert cut.skipped is None
        ranges = [(chunk.start_line, chunk.end_line) for chunk in cut.chunks]
        lines = source.split("\n")
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            before = first - 1  # comments right above belong to it
            while before > 1 and lines[before - 1].strip().startswith("#"):
                before -= 1
            text = "\n".join(lines[before : node.end_lineno])
            if model_counter.count(text) <= 240:
                checked += 1
                assert any(a <= first and (node.end_lineno or 0) <= b for a, b in ranges), (path, node.name)
    assert checked > 100


@pytest.mark.timeout(280)
def test_laws_on_real_files_and_few_fragments(tools: SimpleNamespace, model_counter: ModelTokenCounter) -> None:
    sizes: list[int] = []
    files = installed("*.py", 40, "stdlib") + installed("*.py", 30, "purelib") + installed("*.h", 40, "include")
    assert len(files) > 60
    for path in files:
        data = path.read_bytes()
        cut = tools.laws(data, path.name, counter=model_counter)
        if len(cut.chunks) > 1:  # a file of ten tokens can only be a chunk of ten tokens
            sizes += [model_counter.count(chunk.text) for chunk in cut.chunks]
    assert sum(size < 20 for size in sizes) <= 0.01 * len(sizes)


def test_a_class_that_does_not_fit_is_its_skeleton_and_its_methods(
    tools: SimpleNamespace, model_counter: ModelTokenCounter
) -> None:
    cut = tools.laws(sample("stock.py").encode(), "stock.py", counter=model_counter, limit=128)
    (index,) = holding(cut, "class Stock:")
    assert cut.chunks[index].text.startswith('class Stock:\n    """All shelves.')
    (parent,) = [parent for parent in cut.parents if parent.title == "Stock"]
    assert parent.kind == "class"
    assert (parent.start_line, parent.end_line) == (24, 61)
    (take,) = [chunk for chunk in cut.chunks if chunk.section == ("Stock", "take")]
    assert (take.parent, take.symbol, take.prefix) == (parent.id, "take", "Stock > take\n")
    assert take.text.startswith("    def take(")


def test_a_function_that_does_not_fit_is_cut_between_statements(tools: SimpleNamespace) -> None:
    body = "".join(
        f"    for item_{n} in range({n}):\n        total += work(item_{n})\n        log(total)\n" for n in range(40)
    )
    source = f"def long(total, *, step=1):\n    '''Adds.'''\n{body}    return total\n"
    cut = tools.laws(source.encode(), "a.py")
    assert len(cut.chunks) > 3
    for chunk in cut.chunks[1:]:
        assert chunk.text.startswith(("    for item_", "    return"))
        assert chunk.prefix == "a > long\ndef long(total, *, step=1):\n"
    assert cut.chunks[0].prefix == "a > long\n"
    assert {(chunk.kind, chunk.symbol) for chunk in cut.chunks} == {("code-part", "long")}


def test_go_methods_belong_to_their_receiver(tools: SimpleNamespace) -> None:
    cut = tools.laws(sample("stock.go").encode(), "stock.go", limit=64)
    assert any(chunk.section == ("Shelf", "Take") and chunk.symbol == "Take" for chunk in cut.chunks)


def test_a_header_comment_is_not_the_first_definitions(tools: SimpleNamespace) -> None:
    source = "/* Licence of the file, which speaks about all of it. */\nint f(void) { return 1; }\n"
    cut = tools.laws(source.encode(), "a.c")
    assert [chunk.kind for chunk in cut.chunks] == ["module-header", "code-def"]
    documented = tools.laws(b"/** What f does. */\nint f(void) { return 1; }\n", "a.c")
    assert len(documented.chunks) == 1


def test_broken_syntax_keeps_the_definitions_around_it(tools: SimpleNamespace) -> None:
    source = (
        "import os\n\n\ndef before():\n    return 1\n\n\n"
        + "x = = 3 $$ what\n\n    lost here\n\n"
        + "class After:\n    def method(self):\n        return 2\n"
    )
    cut = tools.laws(source.encode(), "a.py", limit=32)
    assert cut.metadata["syntax_errors"] is True
    assert any("before" in (chunk.symbol or "") for chunk in cut.chunks)
    assert any("After" in (chunk.symbol or "") for chunk in cut.chunks)


@pytest.mark.parametrize("name", ["a.py", "a.js", "a.ts", "a.tsx", "a.java", "a.go", "a.rs", "a.c", "a.cpp"])
def test_nesting_of_ten_thousand_levels_ends(tools: SimpleNamespace, name: str) -> None:
    for opener in ("(", "[\n", "{\n", "if x:\n", "f(function() {\n", "<a>\n", "#if 1\n", "a<b<\n", "/*def f\n"):
        code.parse(opener * 10_000, name=name)
        code.parse(opener * 1_000 + "x" + "\n}" * 1_000, name=name)
    tools.laws(b"{\n(\n" * 1_000, name)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("a.java", "a<b<\n"),
        ("a.c", "/*<a>"),
        ("a.go", "*/->'\n\t"),
        ("a.ts", "*~"),
        ("a.rs", "+-"),
        ("a.js", "-lambda ~await "),
    ],
)
def test_what_makes_the_parser_despair_is_cut_by_its_layout(name: str, unit: str) -> None:
    """Each of these took the parser seconds for 24 KB, and the square of that for more."""
    start = time.process_time()
    document = code.parse(unit * (60_000 // len(unit)), name=name)
    assert time.process_time() - start < 10
    assert document.metadata["syntax_errors"] is True
    assert {block.kind for block in document.blocks} == {"error"}


def test_nested_blocks_of_two_thousand_levels_are_all_covered(tools: SimpleNamespace) -> None:
    source = "\n".join("\t" * depth + "if x:" for depth in range(600)) + "\n" + "\t" * 600 + "pass\n"
    tools.laws(source.encode(), "a.py")
    braces = "int f() {\n" + "{ int a = 1;\n" * 2000 + "}\n" * 2001
    tools.laws(braces.encode(), "a.c")


def test_time_is_linear(tools: SimpleNamespace) -> None:
    """Eight times as much text may cost at most twenty times as much: neither the square nor anything near it."""

    def seconds(copies: int) -> float:
        text = sample("stock.py") * copies
        start = time.process_time()
        tools.cut(text, "a.py")
        return time.process_time() - start

    seconds(2)
    assert seconds(80) < 20 * max(seconds(10), 0.02)


_ANY_NAME = st.sampled_from(NAMES)
_JUNK = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["{", "}", "(", ")", '"""', "'", "/*", "*/", "\n\n", "#if", "#endif", "\r", "\t", "\\\n", "é→界", "`"]
    ),
)


@pytest.mark.timeout(300)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    name=_ANY_NAME,
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 200), _JUNK), max_size=6),
    limit=st.integers(12, 300),
    target=st.integers(1, 500),
    chunker=st.sampled_from(["auto", "structure", "paragraph", "blocks"]),
)
def test_laws_hold_for_broken_code(
    tools: SimpleNamespace, name: str, edits: list[tuple[float, int, str]], limit: int, target: int, chunker: str
) -> None:
    text = sample(name)
    for place, length, junk in edits:
        at = int(place * len(text))
        text = text[:at] + junk + text[at + length :]
    data = text.encode("utf-8", "surrogatepass")
    cut = tools.laws(data, name, limit=limit, target_tokens=target, chunker=chunker)
    assert cut == tools.cut(data, name, limit=limit, target_tokens=target, chunker=chunker)


def test_every_language_of_the_tables_is_known() -> None:
    assert {language for language in GRAMMARS if language != "tsx"} == set(GRAMMAR_LANGUAGES)
    assert not set(GRAMMAR_LANGUAGES) & set(LAYOUT_LANGUAGES)
    extensions = " ".join([*GRAMMAR_LANGUAGES.values(), *LAYOUT_LANGUAGES.values()]).split()
    assert len(extensions) == len(set(extensions)), "an extension stands for one language"
    for name, language in [
        ("a.PY", "python"), ("Makefile", "makefile"), ("Dockerfile.prod", "dockerfile"), ("x.rb", "ruby"),
        ("CMakeLists.txt", "cmake"), ("a.kt", "kotlin"), ("a.sql", "sql"), (".bashrc", "shell"), ("a.unknown", None),
    ]:  # fmt: skip
        assert language_by_name(name) == language


@pytest.mark.parametrize("language", sorted(GRAMMARS))
def test_the_tables_name_only_node_types_of_their_grammars(language: str) -> None:
    """A grammar's next release may rename a node: then this fails, and not the chunks, silently."""
    compiled = language_of(language)
    known = {compiled.node_kind_for_id(index) for index in range(compiled.node_kind_count)}
    grammar = GRAMMARS[language]
    named = grammar.functions | grammar.containers | grammar.variables | grammar.groups | grammar.imports
    named |= grammar.comments | grammar.attributes | grammar.wrappers
    assert named <= known | {"html_comment", "hash_bang_line"}


def test_a_script_without_extension_is_read_by_its_first_line(tools: SimpleNamespace) -> None:
    assert tools.laws(b"#!/usr/bin/env python3\n\n\ndef main():\n    pass\n", "tool").type == "python"
    assert tools.laws(b"#!/usr/bin/env node\nfunction main () {}\n", "tool").chunks[-1].symbol == "main"
    shell = tools.laws(b"#!/bin/sh\necho zqx\n", "tool")
    assert (shell.type, shell.chunker) == ("shell", "blocks")


def test_languages_without_a_grammar_are_cut_by_their_layout() -> None:
    text = "class A\n  def f\n    1\n  end\n\n  def g\n    2\n  end\nend\n\n\nclass B\nend\n"
    document = layout.parse(text, name="a.rb")
    assert document.language == "ruby"
    assert [(text[b.start : b.end].split("\n")[0], b.level) for b in document.blocks] == [
        ("class A", 0), ("  def g", 1), ("class B", 0),
    ]  # fmt: skip


def test_law_5_a_syntax_error_inside_a_method_changes_few_chunks(tools: SimpleNamespace) -> None:
    """People save in the middle of a line: the methods below must not lose their class."""
    methods = "".join(
        f"    def method_{n}(self, value):\n        first = compute({n}, value)\n"
        f"        return [\n            first,\n            {n},\n        ]\n\n"
        for n in range(60)
    )
    source = f"class Long:\n    '''Has many methods.'''\n\n{methods}"
    before = {chunk.id for chunk in tools.cut(source, "a.py", limit=128).chunks}
    for broken in (
        source.replace("            7,\n", "            7,\n            = (\n"),
        source.replace("(30, value)", "(30,, $"),
    ):
        assert broken != source
        cut = tools.laws(broken.encode(), "a.py", limit=128)
        assert cut.metadata["syntax_errors"] is True
        assert len({chunk.id for chunk in cut.chunks} - before) <= 8
    java = (
        "class Long {\n"
        + "".join(f"    int m{n}(int v) {{\n        return call({n}, v) + v * {n};\n    }}\n\n" for n in range(80))
        + "}\n"
    )
    before = {chunk.id for chunk in tools.cut(java, "A.java", limit=96).chunks}
    cut = tools.laws(java.replace("call(40, v)", "call(40, v").encode(), "A.java", limit=96)
    assert len({chunk.id for chunk in cut.chunks} - before) <= 8
