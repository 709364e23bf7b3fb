"""What people draw with signs in plain text: underlined titles, and tables of + and |."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ragd.chunkers.document import Block
from ragd.chunkers.strategies.drawn import drawn_table
from ragd.chunkers.strategies.paragraph import is_underlined

_SENTENCES = "The harbour lay quiet under a grey sky, and nobody spoke of the third boat. " * 3


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("sign", ["=", "-", "~", "^", "*"])
def test_an_underlined_title_stays_with_what_it_stands_above(tools: SimpleNamespace, end: str, sign: str) -> None:
    """Also when it ends like a sentence: the line under it would else begin the next chunk, or end this one."""
    lines = []
    for number in range(60):
        title = f"What is question {number} about? Nothing."
        lines += [title, sign * len(title), "", *[_SENTENCES.strip()] * (number % 4 + 1), ""]
    chunks = tools.laws(end.join(lines).encode(), "faq.rst", target_tokens=90, max_tokens=110).chunks
    assert len(chunks) > 60
    whole = 0
    for chunk in chunks:
        for position, line in enumerate(body := chunk.text.splitlines()):
            if line.startswith("What is question"):
                whole += 1
                assert body[position + 1] == sign * len(line)
                assert body[position + 3].startswith("The harbour"), "the title is the end of the chunk"
    assert whole == 60


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Title\n=====", True),
        ("=======\n Title\n=======", True),
        ("Title\n-------------", True),
        ("A longer title\n---", False),
        ("Title\n--", False),
        ("-----\n-----", False),
        ("-----", False),
        ("two\nlines\n-----", False),
        ("a,b\n---,", False),
        ("x" * 400 + "\n" + "=" * 400, False),
    ],
)
def test_what_is_an_underlined_title(text: str, expected: bool) -> None:
    assert is_underlined(text, Block("paragraph", 0, len(text))) is expected


def test_a_drawn_table_is_cut_between_its_rows(tools: SimpleNamespace) -> None:
    """A full stop in a cell ends no chunk in the middle of a line."""
    rule = "+-----------+--------------------------+\n"
    rows = "".join(
        f"| key {n:03d}   | Limit of it. In seconds. |\n|           | More of it. |\n{rule}" for n in range(60)
    )
    text = f"Before the table.\n\n{rule}{rows}\nBehind the table."
    chunks = tools.laws(text.encode(), "limits.rst", target_tokens=80, max_tokens=100).chunks
    assert len(chunks) > 10
    lines = text.splitlines()
    for chunk in chunks:
        assert chunk.text.strip("\n").splitlines() == lines[chunk.start_line - 1 : chunk.end_line]
        assert not chunk.text.lstrip().startswith("|  "), "a row of two lines is cut"
        assert "|" not in chunk.overlap


def test_one_line_or_a_sentence_is_no_drawn_table() -> None:
    for text in ("| a | b |", "+1 for this.\nAnd for that.", "words", "=====\nTitle\n====="):
        assert drawn_table(text, 0, len(text)) is None
    text = "x\n\n| a |\r\n| b |"
    table = drawn_table(text, 3, len(text))
    assert table is not None
    assert [text[start:end] for start, end in table.lines] == ["| a |", "| b |"]
    assert table.header == ""
