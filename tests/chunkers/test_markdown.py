"""Markdown: what CommonMark says, whole fences and tables, prefixes without repetition."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from ragd.chunkers.parsers.markdown import parse
from ragd.chunkers.records import Chunk, Cut
from ragd.chunkers.tokens import ModelTokenCounter

_FOUR, _THREE = "`" * 4, "`" * 3
_ALIASES = "a: &a [x]\n" + "\n".join(
    f"{after}: &{after} [{', '.join(['*' + before] * 8)}]" for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)
"""Each line names the one before eight times: sixteen million values in a few hundred characters."""
_DELIMITER = re.compile(r"^\|[ :|-]+\|$", re.MULTILINE)


def _sections(result: Cut) -> list[list[str]]:
    return [list(section) for section in dict.fromkeys(chunk.section for chunk in result.chunks)]


def _holding(result: Cut, word: str) -> Chunk:
    (chunk,) = [chunk for chunk in result.chunks if word in chunk.text]
    return chunk


@pytest.mark.parametrize(
    "text",
    [
        f"# Setup\n{_FOUR}md\n{_THREE}sh\n# step zqx\n{_THREE}\n## not a title\n{_FOUR}\nAfter.\n",
        "# Setup\n~~~sh\n# step zqx\n~~~\n",
        f"# Setup\n{_THREE}\n~~~\n# x zqx\n{_THREE}\nAfter.\n",
        f"# Setup\n   {_THREE}sh\n# step zqx\n   {_THREE}\n",
    ],
)
def test_fault_a1_no_heading_is_found_inside_a_fence(tools: SimpleNamespace, text: str) -> None:
    result = tools.laws(text.encode())
    assert _sections(result) == [["Setup"]]
    assert list(_holding(result, "zqx").section) == ["Setup"]


@pytest.mark.parametrize("header", ["| key | unit | limit |", "| key | unit | limit |\n| id | s | max |"])
@pytest.mark.parametrize("limit", [64, 128, 256])
def test_fault_a2_every_table_chunk_has_the_header(
    tools: SimpleNamespace, model_counter: ModelTokenCounter, header: str, limit: int
) -> None:
    rows = [f"| k{number:03} | ms | {number} |" for number in range(1, 121)]
    text = "# Limits\n\nSome words first.\n\n" + "\n".join([header, "| :--- | ------ | ---: |", *rows]) + "\n\nAfter.\n"
    result = tools.laws(text.encode(), counter=model_counter, limit=limit)
    seen: list[str] = []
    for chunk in result.chunks:
        body_rows = [line for line in chunk.text.split("\n") if line in rows]
        if not body_rows:
            continue
        seen += body_rows
        before = chunk.embedded_text[: chunk.embedded_text.index(body_rows[0])]
        assert before.rstrip("\n").split("\n")[-1 - len(header.split("\n")) : -1] == header.split("\n")
        assert len(_DELIMITER.findall(chunk.embedded_text)) == 1
    assert seen == rows
    assert sum(1 for chunk in result.chunks if "| k" in chunk.text) > 3


def test_a_fence_that_fits_is_whole_and_a_split_one_ends_at_lines(tools: SimpleNamespace) -> None:
    small = "```py\n" + "\n".join(f"value_{n} = call({n})" for n in range(20)) + "\n```"
    large = "```py\n" + "\n".join(f"value_{n} = call({n})" + "\n" * (n % 7 == 0) for n in range(200)) + "\n```"
    text = f"# T\n\nWords here. More words.\n\n{small}\n\nBetween.\n\n{large}\n"
    result = tools.laws(text.encode())
    assert any(small in chunk.text for chunk in result.chunks)
    lines = set(text.split("\n"))
    for chunk in result.chunks:
        if "value_" in chunk.text:
            assert set(chunk.text.split("\n")) <= lines
    later = [chunk for chunk in result.chunks if "value_" in chunk.text and "```py" not in chunk.text]
    assert later
    assert all(chunk.prefix.endswith("\n```py\n") for chunk in later)


def test_a_lead_in_stays_with_its_list(tools: SimpleNamespace) -> None:
    words = " ".join(f"word{n}" for n in range(170)) + "."
    text = f"# T\n\n{words}\n\nYou need these:\n\n- zqx one\n- zqx two\n"
    chunk = next(chunk for chunk in tools.laws(text.encode()).chunks if "zqx one" in chunk.text)
    assert "You need these:" in chunk.text


def test_no_chunk_ends_with_a_heading_and_none_stands_alone(tools: SimpleNamespace) -> None:
    text = (
        "# A\n\n## B\n\n### C\n\nBody of c.\n\n## D\n\n### E\n\n" + "Long words go on. " * 60 + "\n\n#### F\n\nEnd.\n"
    )
    for chunk in tools.laws(text.encode()).chunks:
        assert not chunk.text.rstrip().split("\n")[-1].startswith("#")


def test_fault_a8_repeated_text_keeps_its_own_place(tools: SimpleNamespace) -> None:
    paragraph = ("The same sentence stands here again and says nothing new at all. " * 5)[:300]
    text = "".join(f"# Heading {n}\n\n{paragraph}\n\n" for n in range(5))
    result = tools.laws(text.encode())
    starts = [chunk.spans[0][0] for chunk in result.chunks]
    assert len(starts) == 5
    assert starts == sorted(set(starts))
    assert len({chunk.id for chunk in result.chunks}) == 5
    lines = tools.lines(text)
    assert [lines[chunk.start_line - 1] for chunk in result.chunks] == [f"# Heading {n}" for n in range(5)]


def test_equal_chunks_of_one_section_have_their_own_ids(tools: SimpleNamespace) -> None:
    block = "```\n" + "same line of code\n" * 40 + "```\n\n"
    result = tools.laws(("# T\n\nIntro words.\n\n" + block * 5).encode())
    texts = [chunk.embedded_text for chunk in result.chunks]
    assert len(set(texts)) < len(texts)


def test_fault_a10_the_body_is_whole_and_the_prefix_is_shortened(
    tools: SimpleNamespace, model_counter: ModelTokenCounter
) -> None:
    def words(level: int) -> str:
        return " ".join(f"heading{level}word{n}" for n in range(40))

    headings = "\n\n".join("#" * level + " " + words(level) + f"\n\ntext of {level}" for level in range(1, 6))
    table = "| a | b |\n|---|---|\n| zqt | 1 |"
    for limit in (64, 128):
        text = f"{headings}\n\n###### {words(6)}\n\nshort body zqx\n\n{table}\n"
        result = tools.laws(text.encode(), "n" * 150 + ".md", counter=model_counter, limit=limit)
        chunk = _holding(result, "zqx")
        assert "short body zqx" in chunk.text
        assert "zqt" in "".join(chunk.text for chunk in result.chunks)
        for chunk in result.chunks:
            assert model_counter.count(chunk.prefix) <= (limit - 2) // 2


def test_fault_a10_the_last_element_of_the_path_is_the_last_to_go(
    tools: SimpleNamespace, model_counter: ModelTokenCounter
) -> None:
    path = ["Alpha " * 30, "Beta " * 30, "Gamma " * 30]
    text = "".join(f"{'#' * n} {words}\n\n" for n, words in enumerate(path, 1)) + "Words and words go on. " * 120
    result = tools.laws(text.encode(), counter=model_counter)
    later = [chunk.prefix for chunk in result.chunks[1:]]
    assert later
    assert all("Gamma" in prefix and "Alpha" not in prefix for prefix in later)
    assert all(model_counter.count(prefix) <= 254 // 4 for prefix in later)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_fault_a14_line_ends_change_nothing(tools: SimpleNamespace, newline: str) -> None:
    text = (
        "---\ntitle: Guide\ntags: [a, b]\n---\n\n# One\n\nWörds here.\n\n## Two\n\n- a\n- b\n\n"
        + "```sh\nls\n\npwd\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nSetext\n------\n\n"
        + "More words follow. And more of them.\n\n" * 40
    )
    expected = tools.laws(text.encode())
    result = tools.laws(text.replace("\n", newline).encode())
    assert result.title == "Guide"
    assert result.metadata["tags"] == ["a", "b"]
    assert [dropped.reason for dropped in result.dropped] == ["front_matter"]
    for one, other in zip(expected.chunks, result.chunks, strict=True):
        assert (one.id, one.section, one.start_line, one.end_line) == (
            other.id,
            other.section,
            other.start_line,
            other.end_line,
        )
    assert [parent.id for parent in expected.parents] == [parent.id for parent in result.parents]
    with_mark = tools.laws(b"\xef\xbb\xbf" + text.encode())
    assert [chunk.id for chunk in with_mark.chunks] == [chunk.id for chunk in expected.chunks]


def test_fault_a16_a_heading_stands_once_and_slashes_stay_data(tools: SimpleNamespace) -> None:
    result = tools.laws(b"# Root\n## 24/7 desk\nzqx")
    (chunk,) = result.chunks
    assert chunk.section == ("Root", "24/7 desk")
    assert chunk.embedded_text.count("24/7 desk") == 1
    assert chunk.embedded_text.count("Root") == 1


def test_fault_g2_lines_are_exact(tools: SimpleNamespace) -> None:
    lines = ["---", "title: Ü", "a: 1", "b: 2", "c: 3", "---"]
    lines += [f"Zeile {n} über Größe." if n % 3 else "" for n in range(7, 201)]
    lines[136] = "Here is zqx alone."
    text = "\r\n".join(lines)
    result = tools.laws(text.encode())
    chunk = _holding(result, "zqx")
    assert chunk.start_line <= 137 <= chunk.end_line
    for chunk in result.chunks:
        assert "\r\n".join(lines[chunk.start_line - 1 : chunk.end_line]) == chunk.text


def test_titles_come_from_front_matter_then_a_single_h1_then_the_stem(tools: SimpleNamespace) -> None:
    assert tools.cut("---\ntitle: Front\n---\n# One\n\nx", "stem.md").title == "Front"
    assert tools.cut("# One\n\nx", "stem.md").title == "One"
    assert tools.cut("<!-- note -->\n\n# One\n\nx", "stem.md").title == "One"
    assert tools.cut("words first\n\n# One\n\nx", "stem.md").title == "stem"
    assert tools.cut("# One\n\nx\n\n# Two\n\ny", "stem.md").title == "stem"


@pytest.mark.parametrize(
    ("front", "warned"),
    [
        ("title: [unclosed", True),
        (_ALIASES, True),
        ("a: &a [*a]", True),
        ("date: 2024-01-02\nwhen: 2024-01-02T03:04:05Z\nn: .nan\ni: .inf\nkey: !!binary aGk=\n1: one", False),
        ("date: 2024-13-45", True),
        ("x: !!python/object/apply:os.system ['true']", True),
    ],
)
def test_front_matter_is_json_or_a_warning(tools: SimpleNamespace, front: str, warned: bool) -> None:
    import json

    result = tools.laws(f"---\n{front}\n---\n\n# T\n\nBody zqx.\n".encode())
    json.dumps(result.metadata, allow_nan=False)
    assert bool(result.warnings) == warned
    assert [dropped.reason for dropped in result.dropped] == ["front_matter"]
    assert len(result.chunks) == 1


def test_prose_between_two_breaks_is_not_front_matter(tools: SimpleNamespace) -> None:
    result = tools.laws(b"---\nJust some prose zqx.\n---\n\nMore.\n")
    assert not result.dropped
    assert _holding(result, "zqx")
    assert _holding(tools.laws(b"---\nnever: closed\n\nzqx\n"), "zqx")


def test_fault_b15_a_nul_in_a_title_is_a_blank(tools: SimpleNamespace) -> None:
    result = tools.laws(b"---\ntitle: Scan\x00\n---\n# Head\x00ing\n\nalpha\x00beta zqx\n")
    assert result.title == "Scan"
    assert result.chunks[0].section == ("Head ing",)
    assert "alpha beta zqx" in result.chunks[0].text


def test_small_siblings_share_a_chunk_under_their_parent(tools: SimpleNamespace) -> None:
    options = "".join(f"## Option {n}\n\nSets the value {n}.\n\n" for n in range(12))
    result = tools.laws(f"# Options\n\n{options}".encode())
    assert len(result.chunks) < 6
    assert all(chunk.section == ("Options",) for chunk in result.chunks if chunk.text.count("##") > 1)
    chapters = "".join(f"# Chapter {n}\n\nShort.\n\n" for n in range(5))
    assert len(tools.laws(chapters.encode()).chunks) == 5


def test_headings_in_quotes_and_lists_open_no_section(tools: SimpleNamespace) -> None:
    result = tools.laws(b"# Top\n\n> ## quoted\n>\n> text\n\n- # listed\n\n  text zqx\n")
    assert _sections(result) == [["Top"]]


def test_markup_in_headings_is_not_part_of_the_path(tools: SimpleNamespace) -> None:
    text = "# The *best* [`tool`](http://x) {#anchor}\n\nzqx\n\nSetext **two**\nlines\n===\n\nzqy"
    assert _sections(tools.laws(text.encode())) == [["The best tool"], ["Setext two lines"]]


def test_parents_are_the_sections(tools: SimpleNamespace) -> None:
    text = "# A\n\n" + "First words of a. " * 20 + "\n\n## B\n\n" + "Words of b go here. " * 150
    result = tools.laws(text.encode())
    parents = {parent.id: parent for parent in result.parents}
    for chunk in result.chunks:
        assert chunk.parent is not None
        assert parents[chunk.parent].section == chunk.section
    assert [parent.section for parent in result.parents] == [("A",), ("A", "B")]


def test_every_line_is_in_one_block_where_commonmark_gives_no_token() -> None:
    text = "-\n\n[ref]: http://x\n\n" + "> " * 60 + "deep\n\n" + "- " * 60 + "deep\n\n>\n> a\n>\n"
    document = parse(text, name="a.md")
    spans = [(block.start, block.end) for block in document.blocks]
    assert spans == sorted(spans)
    assert "\n".join(text[start:end] for start, end in spans).split() == text.split()
