"""Files made to be misread: texts that begin like another format, and shapes that invite quadratic work."""

from __future__ import annotations

import time

import pytest

from ragd.chunkers.cut import cut
from ragd.chunkers.records import Cut, CutSettings, ModelBudget, SourceFile
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
