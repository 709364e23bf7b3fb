"""The faults of chunkers that users of other tools met, in the shapes that stand beside the reported examples."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import msgspec
import pytest

from ragd.chunkers.records import Chunk, Cut
from ragd.chunkers.tokens import ModelTokenCounter, PlainCounter, TiktokenCounter, TokenCounter

_HEADER, _DELIMITER = "| key | unit | limit |", "|---|---|---|"
_ROWS = [f"| k{number:03} | ms | {number} |" for number in range(120)]
_PIPES = "\n".join([_HEADER, _DELIMITER, *_ROWS])
_ROW = re.compile(r"k\d{3}\b[^\r\n]*")
_IS_DELIMITER = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*([|+][ \t]*:?-+:?[ \t]*)*\|?[ \t]*")


def _html(header: str) -> str:
    cells = "".join(f"<tr><td>k{n:03}</td><td>ms</td><td>{n}</td></tr>" for n in range(120))
    return f"<h1>T</h1><table>{header}{cells}</table>"


def _indented(text: str, mark: str) -> str:
    return "\n".join(mark + line for line in text.split("\n"))


_FENCES = {
    "a closer has no info": "```\n``` sh\n# zqx\n```\nAfter\n",
    "a closer is at least as long": "`````\n````\n# zqx\n`````\nAfter\n",
    "a closer may be longer": "```\n# zqx\n``````  \nAfter\n",
    "a closer may stand in by three": "```\n# zqx\n   ```\nAfter\n",
    "four are too many": "```\n    ```\n# zqx\n```\nAfter\n",
    "never closed": "```\n# zqx\n## b\n",
    "in a quote": "> ```sh\n> # zqx\n> ```\nAfter\n",
    "in a list": "- item\n\n  ~~~sh\n  # zqx\n  ## b\n  ~~~\n- other\n",
    "deep in lists": "1. item\n   - b\n\n     ```sh\n     # zqx\n     ```\n",
    "indented code": "    # zqx\n    ## b\n\nAfter\n",
    "code by a tab": "\t# zqx\n\nAfter\n",
    "a comment": "<!--\n# zqx\n\n## b\n-->\nAfter\n",
    "pre": "<pre>\n# zqx\n\n## b\n</pre>\nAfter\n",
    "script": "<script>\n# zqx\n\n## b\n</script>\nAfter\n",
    "braces": "```{r, echo=FALSE}\n# zqx\n```\n",
    "tildes may name ticks": "~~~ a`b`\n# zqx\n~~~\n",
    "ticks may not": "``` a`b\nzqx\n",
    "more tildes": "~~~~\n~~~\n# zqx\n~~~~\n",
    "underlined": "```\nzqx\n===\nb\n---\n```\n",
    "within a paragraph": "text\n```sh\n# zqx\n```\ntext\n",
    "a tag": "#zqx\n\n#5 bolt\n",
    "escaped": "\\# zqx\n",
    "too many signs": "####### zqx\n",
    "a footnote": "A note[^1].\n\n[^1]: this\n\n    # zqx\n",
}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("text", _FENCES.values(), ids=_FENCES.keys())
def test_fault_a1_what_is_no_heading_opens_no_section(tools: SimpleNamespace, text: str, end: str) -> None:
    result = tools.laws(("# Setup\n\n" + text).replace("\n", end).encode())
    assert {chunk.section for chunk in result.chunks} == {("Setup",)}
    assert any("zqx" in chunk.text for chunk in result.chunks)


def test_fault_a1_a_comment_in_front_matter_is_no_heading(tools: SimpleNamespace) -> None:
    for text in ("---\n# zqx\ntitle: T\n---\n# Setup\nx\n", '+++\n# zqx\ntitle = "T"\ntags = ["a"]\n+++\n# Setup\nx\n'):
        result = tools.laws(text.encode())
        assert [chunk.section for chunk in result.chunks] == [("Setup",)]
        assert [dropped.reason for dropped in result.dropped] == ["front_matter"]
        assert (result.title, result.chunks[0].start_line) == ("T", text[: text.index("# Setup")].count("\n") + 1)
    assert tools.laws(b"+++\nno toml zqx\n+++\nx\n").dropped == ()


_TABLES: dict[str, tuple[str, str, list[str]]] = {
    "no outer pipes": ("a.md", "\n".join(line.strip("| ") for line in _PIPES.split("\n")), ["key | unit | limit"]),
    "in a list": ("a.md", "- item\n\n" + _indented(_PIPES, "  "), [_HEADER]),
    "in a quote": ("a.md", _indented(_PIPES, "> "), [_HEADER]),
    "two header rows in a quote": ("a.md", _indented("| a | b | c |\n" + _PIPES, "> "), ["| a | b | c |", _HEADER]),
    "three header rows": ("a.md", f"| a | b | c |\n| d | e | f |\n{_PIPES}", ["| a | b | c |", _HEADER]),
    "right below a paragraph": ("a.md", "Words first:\n" + _PIPES, [_HEADER]),
    "long rules": ("a.md", _PIPES.replace(_DELIMITER, f"| :{'-' * 30} | {'-' * 30}: | {'-' * 20} |"), [_HEADER]),
    "below deep headings": ("a.md", "".join(f"{'#' * n} {'long ' * 30}\n\n" for n in range(1, 7)) + _PIPES, [_HEADER]),
    "cut as paragraphs": ("a.md?paragraph", _PIPES, [_HEADER]),
    "cut as blocks": ("a.md?blocks", _PIPES, [_HEADER]),
    "html": ("a.html", _html("<tr><th>key</th><th>unit</th><th>limit</th></tr>"), [_HEADER]),
    "html, two header rows": (
        "a.html",
        _html("<thead><tr><th>key<th>unit<th>limit</tr><tr><th>a<th>b<th>c</tr></thead>"),
        [_HEADER, "| a | b | c |"],
    ),
    "html cut as paragraphs": (
        "a.html?paragraph",
        _html("<tr><th>key</th><th>unit</th><th>limit</th></tr>"),
        [_HEADER],
    ),
    "org": ("a.org", _PIPES.replace(_DELIMITER, "|-----+------+-------|"), [_HEADER]),
    "org with a rule above": ("a.org", "|--+--+--|\n" + _PIPES.replace(_DELIMITER, "|--+--+--|"), [_HEADER]),
    "pipes in plain text": ("a.txt", _PIPES, [_HEADER]),
}


@pytest.mark.parametrize("limit", [96, 128, 256])
@pytest.mark.parametrize(("name", "text", "headers"), _TABLES.values(), ids=_TABLES.keys())
def test_fault_a2_a_table_of_any_shape_keeps_its_header(
    tools: SimpleNamespace, model_counter: ModelTokenCounter, name: str, text: str, headers: list[str], limit: int
) -> None:
    name, _, chunker = name.partition("?")
    result = tools.laws(text.encode(), name, counter=model_counter, limit=limit, chunker=chunker or "auto")
    seen = []
    for chunk in result.chunks:
        rows = [line for line in tools.lines(chunk.text) if _ROW.search(line)]
        if not rows:
            continue
        seen += [row.strip("|> ") for row in rows]
        before = chunk.embedded_text[: chunk.embedded_text.index(rows[0].strip(" >"))]
        assert all(header in before for header in headers)
        rules = sum(1 for line in before.split("\n") if _IS_DELIMITER.fullmatch(line))
        assert rules == (2 if text.startswith("|--") and chunk is result.chunks[0] else 1)
    assert seen == [row.strip("| ") for row in _ROWS]
    assert len(result.chunks) > 3


_GRID_RULE = "+------+------+-------+\n"
_DRAWN = {
    "a grid": _GRID_RULE
    + "| key  | unit | limit |\n+======+======+=======+\n"
    + "".join(f"| k{n:03} | ms   | {n:<5} |\n{_GRID_RULE}" for n in range(120)),
    "what a database prints": _GRID_RULE
    + f"| key  | unit | limit |\n{_GRID_RULE}"
    + "".join(f"| k{n:03} | ms   | {n:<5} |\n" for n in range(120))
    + _GRID_RULE,
    "columns": "====  ====  =====\nkey   unit  limit\n====  ====  =====\n"
    + "".join(f"k{n:03}  ms    {n}\n" for n in range(120))
    + "====  ====  =====\n",
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("text", _DRAWN.values(), ids=_DRAWN.keys())
def test_fault_a2_a_drawn_table_keeps_its_header(
    tools: SimpleNamespace, model_counter: ModelTokenCounter, text: str, end: str
) -> None:
    data = ("Words before it.\n\n" + text + "\nAfter.\n").replace("\n", end).encode()
    result = tools.laws(data, "a.rst", counter=model_counter, limit=128)
    (header,) = [line for line in text.split("\n") if "unit" in line]
    holding = [chunk for chunk in result.chunks if _ROW.search(chunk.text)]
    assert len(holding) > 4
    for chunk in holding:
        assert chunk.embedded_text.count(header) == 1
        assert chunk.embedded_text.index(header) < chunk.embedded_text.index(_ROW.findall(chunk.text)[0])
    assert sorted(re.findall(r"k\d{3}", "".join(chunk.text for chunk in holding))) == [f"k{n:03}" for n in range(120)]


def test_fault_a2_a_grid_without_a_header_gets_none(tools: SimpleNamespace) -> None:
    text = _GRID_RULE + "".join(f"| k{n:03} | ms   | {n:<5} |\n{_GRID_RULE}" for n in range(120))
    assert {chunk.prefix for chunk in tools.laws(text.encode(), "a.rst", limit=96).chunks} == {"a\n"}


@pytest.mark.parametrize("chunker", ["auto", "paragraph", "blocks"])
@pytest.mark.parametrize("between", ["", "<p>between</p>", "<h2>Next</h2>"])
def test_fault_a2_a_table_without_a_header_never_gets_that_of_another(
    tools: SimpleNamespace, between: str, chunker: str
) -> None:
    second = "".join(f"<tr><td>q{n}</td><td>zz</td></tr>" for n in range(120))
    page = f"<table><tr><th>key</th><th>unit</th></tr><tr><td>k</td><td>ms</td></tr></table>{between}"
    result = tools.laws(f"{page}<table>{second}</table>".encode(), "a.html", limit=96, chunker=chunker)
    later = [chunk for chunk in result.chunks if "| q" in chunk.text and "key" not in chunk.text]
    assert len(later) > 3
    assert not any("key" in chunk.prefix for chunk in later)


def test_fault_a2_a_wide_header_is_a_header_still(tools: SimpleNamespace, model_counter: ModelTokenCounter) -> None:
    """Where its rule is what makes it too long, the rule gets shorter."""
    header = "| " + " | ".join(f"column name {n}" for n in range(18)) + " |"
    rows = [f"| k{n:03} | " + " | ".join(str(n * m % 97) for m in range(17)) + " |" for n in range(40)]
    text = "\n".join([header, "|---" * 18 + "|", *rows])
    for chunk in tools.laws(text.encode(), counter=model_counter).chunks:
        before = chunk.embedded_text[: chunk.embedded_text.index("| k")]
        assert header in before
        assert sum(1 for line in before.split("\n") if _IS_DELIMITER.fullmatch(line)) == 1


_SCRIPTS = {
    "flags": "🇩🇪🇫🇷🇯🇵" * 200,
    "accents": "e\u0301\u0302\u0323\u0330" * 300,
    "jamo": "\u1112\u1161\u11ab\u1100\u1173\u11af" * 200,
    "devanagari": "क्षत्रिय हिन्दी " * 200,
    "thai": "ภาษาไทยไม่มีช่องว่าง" * 100,
    "keycaps": "1️⃣2️⃣#️⃣" * 200,
    "astral letters": "𝔘𝔫𝔦𝔠𝔬𝔡𝔢" * 200,
    "one endless letter": "a" + "\u0301" * 2000,
}


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.rst", "a.csv"])
@pytest.mark.parametrize("text", _SCRIPTS.values(), ids=_SCRIPTS.keys())
def test_fault_a5_no_script_is_cut_in_the_middle_of_a_letter(
    tools: SimpleNamespace, model_counter: ModelTokenCounter, text: str, name: str
) -> None:
    counters: list[TokenCounter] = [model_counter, PlainCounter(special_tokens=2), TiktokenCounter()]
    for counter in counters:
        result = tools.laws(text.encode(), name, counter=counter, limit=24, overlap_ratio=0)
        assert "".join(chunk.text for chunk in result.chunks).split() == text.split() or " " in text
        assert all("\ufffd" not in chunk.embedded_text for chunk in result.chunks)


_CONTROLS = "<|endoftext|> <|im_start|> <|fim_prefix|> [SEP] [CLS] [PAD] [MASK] <s> </s> <unk> ##ing [unused1]"


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.py", "a.csv", "a.html", "a.rst"])
def test_fault_a6_special_tokens_are_text_in_every_format(
    tools: SimpleNamespace, model_counter: ModelTokenCounter, name: str
) -> None:
    text = f"The end mark is {_CONTROLS}, code zqx."
    source = {"a.html": "<p>" + text.replace("<", "&lt;") + "</p>", "a.py": f"# {text}\nx = 1\n"}.get(name, text)
    counters: list[TokenCounter] = [model_counter, PlainCounter(special_tokens=2), TiktokenCounter()]
    for counter in counters:
        result = tools.laws(source.encode(), name, counter=counter)
        assert "<|endoftext|>" in "".join(chunk.text for chunk in result.chunks)
        tools.laws((source + "\n\n" + "[SEP]" * 500 + " [PAD]" * 500).encode(), name, counter=counter, limit=64)


def test_fault_a10_a_prefix_of_separators_alone_is_none(
    tools: SimpleNamespace, model_counter: ModelTokenCounter
) -> None:
    headings = "\n\n".join("#" * level + " " + f"heading{level}word " * 40 for level in range(1, 7))
    for limit in (12, 16, 20, 24):
        result = tools.laws(f"{headings}\n\nshort body zqx\n".encode(), counter=model_counter, limit=limit)
        assert not any(line.strip(" >") == "" for chunk in result.chunks for line in chunk.prefix.split("\n")[:-1])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("ends", [["\r\n"], ["\r"], ["\n", "\r\n", "\n"]])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", "<title>T</title>\n<h1>One</h1>\n<p>a\nb é</p>\n<pre>x\n\ny</pre>\n<h2>Two</h2>\n<p>c</p>\n"),
        ("a.txt", "Chapter 1\n\nWörds of one.\n\n\n\nBig Title Here\n\n" + "More words here. " * 60 + "\n"),
        ("a.rst", "Title\n=====\n\nWörds.\n\n+---+---+\n| a | b |\n+===+===+\n| c | d |\n+---+---+\n"),
        ("a.org", "* Head\nwörds\n\n| a | b |\n|---+---|\n| c | d |\n"),
        ("a.sh", "#!/bin/sh\nfoo() {\n  echo hï\n}\n\nif x; then\n  y\nfi\n"),
        ("a.yaml", "a: 1\nb:\n  - x\n\nc: |\n  t\n  ü\n"),
        ("a.md", '+++\ntitle = "x"\n+++\n\n# Öne\n\nx\n'),
    ],
)
def test_fault_a14_line_ends_and_encodings_change_nothing(
    tools: SimpleNamespace, name: str, text: str, ends: list[str], encoding: str
) -> None:
    def shape(result: Cut) -> list[tuple[object, ...]]:
        return [(c.id, c.section, c.kind, c.start_line, c.end_line, c.embedded_text) for c in result.chunks]

    lines = text.split("\n")
    other = "".join(line + ends[n % len(ends)] for n, line in enumerate(lines[:-1])) + lines[-1]
    expected = tools.laws(text.encode(), name, limit=64)
    result = tools.laws(other.encode(encoding), name, limit=64)
    assert shape(result) == shape(expected)
    assert (result.title, result.metadata) == (expected.title, expected.metadata)


@pytest.mark.parametrize(
    ("name", "text", "section"),
    [
        ("a.md", "# Root\n\n## a > b\n\n### c/d\nzqx\n", ("Root", "a > b", "c/d")),
        ("a.md", "Root\n====\n\n24/7 desk\n---\nzqx\n", ("Root", "24/7 desk")),
        ("a.md", "# Root #\n## **24/7** `x/y` ##\nzqx", ("Root", "24/7 x/y")),
        ("a.md", "---\ntitle: Root\n---\n# Root\n## 24/7 desk\nzqx", ("Root", "24/7 desk")),
        ("24_7.md", "# 24/7\nzqx", ("24/7",)),
        ("a.md", "# A\n## A/B\n### B\nzqx", ("A", "A/B", "B")),
        ("a.html", "<title>Root</title><h1>Root</h1><h2>24/7 desk</h2><p>zqx</p>", ("Root", "24/7 desk")),
    ],
)
def test_fault_a16_headings_are_data_and_stand_once(
    tools: SimpleNamespace, name: str, text: str, section: tuple[str, ...]
) -> None:
    for source in (text, text.replace("zqx", "zqx says a few words. " * 120)):
        chunks: tuple[Chunk, ...] = tools.laws(source.encode(), name).chunks
        assert {chunk.section for chunk in chunks} == {section}
        for chunk in chunks[1:]:
            for element in section:
                assert chunk.prefix.rstrip("\n").split(" > ").count(element) <= 1
            assert section[-1] in chunk.prefix
        assert not any(line in chunks[0].text for line in chunks[0].prefix.split(" > ") if line in section)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.tsv", b'\xef\xbb\xbf"Last, First"\tAge\r\n"Roe, Ada"\t30'),
        ("a.csv", '"Last, First";Age\r\n"Roe, Ada";30'.encode("utf-16")),
        ("a.csv", '\ufeff"Last, First",Age\r\n"Roe, Ada",30'.encode("utf-16-le")),
    ],
)
def test_fault_b6_a_mark_is_no_part_of_the_first_column(tools: SimpleNamespace, name: str, data: bytes) -> None:
    result = tools.laws(data, name)
    assert result.metadata["columns"] == ["Last, First", "Age"]
    assert all("\ufeff" not in chunk.embedded_text for chunk in result.chunks)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.md", "---\ntitle: x\n---\n\n# Head\n\nzqx\n"), ("a.py", "import os\nzqx = 1\n"), ("a.html", "<p>zqx</p>")],
)
def test_fault_b6_a_mark_hides_neither_front_matter_nor_the_first_line(
    tools: SimpleNamespace, name: str, text: str
) -> None:
    plain, marked = tools.laws(text.encode(), name), tools.laws(b"\xef\xbb\xbf" + text.encode(), name)
    assert [chunk.id for chunk in plain.chunks] == [chunk.id for chunk in marked.chunks]
    assert plain.metadata == marked.metadata


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.md", b"---\ntitle: Scan\x00\ntags: [a\x00b]\n---\n# Head\n\nzqx\x00tail"),
        ("a.csv", b"na\x00me,b\nzqx\x00,2\n"),
        ("a.html", b"<title>Scan\x00</title><h1>a\x00</h1><p>zqx\x00&#0;x</p>"),
        ("a.py", b"def f\x00():\n    return 'zqx\x00'\n"),
        ("a.txt", b"Chapter \x00 1\n\nzqx\x00"),
    ],
)
def test_fault_b15_no_nul_is_left_anywhere(tools: SimpleNamespace, name: str, data: bytes) -> None:
    result = tools.laws(data, name)
    assert any("zqx" in chunk.text for chunk in result.chunks)
    assert "\x00" not in repr(result).encode().decode("unicode_escape")


def _front(text: str) -> str:
    return f"---\n{text}\n---\n\n# H\n\nzqx\n"


@pytest.mark.parametrize(
    "front",
    [
        "n: " + "9" * 400,
        "n: " + "9" * 5000,
        "n: 0x" + "f" * 9000,
        "0x" + "f" * 9000 + ": x",
        "f: 1e999\ng: -.inf\nh: .nan",
        "1: x\nnull: y\ntrue: z\n2024-01-01: d",
        "? [a, b]\n: c\nd: e",
        "a: 1\na: 2",
        "s: !!set {a, b}\nb: !!binary aGk=\no: !!omap [a: 1]",
        "t: 12:30:45\nv: 190:20:30\nw: 014",
        "d: " + "[" * 300 + "]" * 300,
        "\n".join(f"k{n}: {n}" for n in range(9000)),
        '"\\0nul": "\\ud800"',
    ],
)
def test_fault_d4_whatever_front_matter_says_it_becomes_plain_values(tools: SimpleNamespace, front: str) -> None:
    """Values that JSON, SQLite and the pipe to a parsing child all hold."""
    result = tools.laws(_front(front).encode())
    assert json.loads(json.dumps(result.metadata, allow_nan=False)) == result.metadata
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(result.metadata)) == result.metadata
    assert "zqx" in result.chunks[-1].text


def test_fault_d4_values_of_front_matter_keep_their_types(tools: SimpleNamespace) -> None:
    front = "author:\ntags: []\ntags2: [a, b]\nowner: {name: x}\ndate: 2024-05-01\nn: .nan"
    assert tools.laws(_front(front).encode()).metadata == {
        "author": None,
        "tags": [],
        "tags2": ["a", "b"],
        "owner": {"name": "x"},
        "date": "2024-05-01",
        "n": "nan",
    }
    mixed = "tags: [a, 1, 1.5, true, null, {x: y}, [z], 2024-05-01, ' b ', '']\ntitle: true"
    result = tools.laws(_front(mixed).encode())
    assert (result.metadata["tags"], result.title) == (["a", "1", "1.5", "true", "2024-05-01", "b"], "true")
    toml = '+++\ntags = ["a"]\nd = 2024-05-01\nn = nan\no = {a = 1}\ne = []\n+++\nzqx\n'
    assert tools.laws(toml.encode()).metadata == {
        "tags": ["a"],
        "d": "2024-05-01",
        "n": "nan",
        "o": {"a": 1},
        "e": [],
    }


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("latin-1", "Größe"),
        ("latin-1", "über die Größe der Füße, größer als süß"),
        ("latin-1", "A informação sobre a situação da educação não está disponível."),
        ("latin-1", "Hän päättää käydä täällä tänään, ja työntää pöydän pään päälle."),
        ("latin-1", "Öö on pime ja tööd on palju. Püüdke ööbida äärelinnas."),
        ("latin-1", "La société créée en février a été agréée."),
        ("cp1252", "He said “hello” — it’s “fine”… and ‘so’ on."),
        ("cp1250", "Příliš žluťoučký kůň úpěl ďábelské ódy."),
        ("cp1251", "Привет мир, это текст"),
        ("shift_jis", "def f():\n    # これはコメントです\n    return 1\n"),
        ("big5", "你好世界，這是一個測試。今天天氣很好。"),
    ],
)
def test_fault_b8_letters_stay_what_they_are(tools: SimpleNamespace, encoding: str, text: str) -> None:
    (chunk,) = tools.laws((text + " zqx").encode(encoding), "a.txt").chunks
    assert chunk.text == text + " zqx"
