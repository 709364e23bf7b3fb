"""Files made to be misread: texts that begin like another format, and shapes that invite quadratic work."""

from __future__ import annotations

import time

import pytest

from ragd.chunkers.cut import cut
from ragd.chunkers.records import Cut, CutSettings, ModelBudget, SourceFile
from ragd.chunkers.sentences import sentence_spans
from ragd.chunkers.tokens import PlainCounter


def _cut(data: bytes, name: str = "a.md") -> Cut:
    return cut(SourceFile(data, "root", name.encode()), CutSettings(), PlainCounter(2), ModelBudget(256))


@pytest.mark.parametrize("mark", ["ID3", "GIF89a", "GIF8", "OggS", "fLaC", "wOFF", "wOF2"])
def test_a_note_that_begins_with_the_name_of_a_format_is_text(mark: str) -> None:
    result = _cut(f"{mark} is how such files begin.\n".encode())
    assert result.skipped is None
    assert mark in result.chunks[0].text


@pytest.mark.parametrize(
    "head",
    [
        b"ID3\x04\x00\x00\x00\x00\x0f\x76TSSE",
        b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00!",
        b"OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00",
        b"fLaC\x00\x00\x00\x22\x10\x00",
        b"wOF2\x00\x01\x00\x00\x00\x00",
        b"PK\x03\x04\x14\x00",
        b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\n",
    ],
)
def test_the_real_format_is_binary(head: bytes) -> None:
    assert _cut(head + b"words that could be text " * 40).skipped == "binary"


def test_law_linear_a_chain_of_bare_headings() -> None:
    """It took 20 s of processor time when every heading was compared with all before it."""
    started = time.process_time()
    result = _cut(b"# a\n" * 40_000)
    assert time.process_time() - started < 8
    assert result.chunks


def _lines_of_words(count: int, end: str) -> list[str]:
    """Lines that all differ, as a log has them."""
    return [" ".join(f"w{(number * 7919 + k * 104729) % 99991}" for k in range(9)) + end for number in range(count)]


@pytest.mark.parametrize("end", [".", ""])
def test_law_locality_one_line_of_a_long_paragraph(end: str) -> None:
    """A paragraph of 100,000 characters is given to the sentence finder in slices; where a slice ends must not show:
    it did in every slice after the edit, and without full stops every chunk after it was another."""
    lines = _lines_of_words(1_800, end)
    before = {chunk.id for chunk in _cut("\n".join(lines).encode()).chunks}
    for number in (3, 400, 1_111):
        edited = [*lines[:number], f"another line {number}{end}", *lines[number + 1 :]]
        after = {chunk.id for chunk in _cut("\n".join(edited).encode()).chunks}
        assert len(after - before) <= 5
        assert len(before - after) <= 5


def test_sentences_do_not_depend_on_where_the_text_begins() -> None:
    text = "\n".join(_lines_of_words(1_500, "."))
    for length in (1, 10, 1_000):
        longer = "x" * length + ". " + text
        spans = {longer[start:stop] for start, stop in sentence_spans(longer, 0, len(longer))}
        assert len({text[start:stop] for start, stop in sentence_spans(text, 0, len(text))} - spans) <= 1
