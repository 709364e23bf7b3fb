"""Plain text: sentences by paragraph, chapters, overlap, hostile texts of the fault list."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from ragd.chunkers.parsers.plain import parse
from ragd.chunkers.sentences import sentence_spans
from ragd.chunkers.tokens import ModelTokenCounter

_PROSE = "The harbour lay quiet under a grey sky. Two boats came in before noon, and nobody spoke of the third. " * 80


@pytest.mark.parametrize("text", ["ab\n" * 400, "abcdefgh " * 14 + "abcd"])
@pytest.mark.parametrize("size", [1, 2, 13, 50, 100, 800])
@pytest.mark.parametrize("ratio", [0.0, 0.2, 0.6, 0.98, 0.999])
def test_fault_a3_every_accepted_overlap_ends(tools: SimpleNamespace, text: str, size: int, ratio: float) -> None:
    began = time.perf_counter()
    result = tools.laws(text.encode(), "a.txt", target_tokens=size, max_tokens=size, overlap_ratio=ratio)
    assert time.perf_counter() - began < 5
    starts = [chunk.spans[0][0] for chunk in result.chunks]
    assert starts == sorted(set(starts))
    assert result.chunks[-1].spans[-1][1] == len(text.rstrip())


@pytest.mark.parametrize("limit", [7, 10, 13])
def test_fault_a5_no_character_is_cut_in_the_middle(
    tools: SimpleNamespace, model_counter: ModelTokenCounter, limit: int
) -> None:
    text = ("温度過高" + "🧪👩🏽‍🔬") * 400
    for counter in (model_counter, None):
        result = tools.laws(text.encode(), "a.txt", counter=counter, limit=limit, max_tokens=limit, overlap_ratio=0)
        assert "".join(chunk.text for chunk in result.chunks) == text
        assert all("\ufffd" not in chunk.embedded_text for chunk in result.chunks)
        assert all(not chunk.text.startswith(("\u200d", "🏽")) for chunk in result.chunks)


def test_fault_a6_special_tokens_are_text(tools: SimpleNamespace, model_counter: ModelTokenCounter) -> None:
    text = "The end mark is <|endoftext|> and [SEP], code zqx."
    (chunk,) = tools.laws(text.encode(), "notes.md", counter=model_counter).chunks
    assert chunk.text == text


def test_fault_a7_positions_are_bytes_outside_and_characters_inside(tools: SimpleNamespace) -> None:
    data = ("# é→界\n\n" + "Wörter über Größe 温度. " * 100).encode()
    for chunk in tools.laws(data, "a.txt").chunks:
        assert b"".join(data[start:end] for start, end in chunk.spans).decode() == chunk.text


def test_overlap_is_whole_sentences_inside_the_budget(tools: SimpleNamespace, model_counter: ModelTokenCounter) -> None:
    result = tools.laws(_PROSE.encode(), "a.txt", counter=model_counter)
    overlapped = [chunk for chunk in result.chunks if chunk.overlap]
    assert len(overlapped) > len(result.chunks) / 2
    assert all(chunk.overlap.strip().endswith(".") for chunk in overlapped)
    assert all(chunk.overlap[0].isupper() for chunk in overlapped)
    assert not any(chunk.overlap for chunk in tools.laws(_PROSE.encode(), "a.txt", overlap_ratio=0).chunks)


def test_chapters_are_hard_boundaries_and_parents(tools: SimpleNamespace) -> None:
    text = f"Chapter 1\n\n{_PROSE}\n\n\n\nChapter 2\n\n{_PROSE}"
    result = tools.laws(text.encode(), "book.txt")
    assert {chunk.section for chunk in result.chunks} == {("Chapter 1",), ("Chapter 2",)}
    assert [(parent.kind, parent.title) for parent in result.parents] == [
        ("chapter", "Chapter 1"),
        ("chapter", "Chapter 2"),
    ]
    assert not next(chunk for chunk in result.chunks if "Chapter 2" in chunk.text).overlap


def test_flat_text_has_its_anchor_segments_as_parents(tools: SimpleNamespace) -> None:
    text = "\n\n".join(f"Paragraph {n} has words. " * 8 for n in range(100))
    result = tools.laws(text.encode(), "flat.txt")
    assert {parent.kind for parent in result.parents} == {"segment"}
    assert 1 < len(result.parents) < len(result.chunks)


def test_sentences_are_not_cut_where_a_paragraph_fits(tools: SimpleNamespace) -> None:
    for chunk in tools.laws(_PROSE.encode(), "a.txt").chunks:
        assert chunk.text.rstrip().endswith(".")


def test_a_lead_in_stays_with_what_it_announces(tools: SimpleNamespace) -> None:
    words = "Some words stand here and there. " * 30
    code = "\n".join(f"    call_{n}(value)" for n in range(20))
    for lead_in in ("Type this:", ".. code-block:: python\n   :caption: zqx", "Run it like so::"):
        result = tools.laws(f"{words}\n\n{lead_in}\n\n{code}\n\n{words}".encode(), "a.rst")
        (chunk,) = [chunk for chunk in result.chunks if "call_0(" in chunk.text]
        assert lead_in in chunk.text


def test_a_heading_needs_distance_and_something_below() -> None:
    text = "Not At Start\n\nwords.\n\nNot A Heading\n\nwords\n\n\nA Heading Here\n\nwords\n\nChapter 2\n\nwords"
    headings = [block.text for block in parse(text, name="a").blocks if block.kind == "heading"]
    assert headings == ["A Heading Here", "Chapter 2"]
    assert [block.kind for block in parse("words.\n\n\n\nAUDIENCE: Booo —\n\nx", name="a").blocks] == ["paragraph"] * 3
    assert [block.kind for block in parse("words.\n\n\n\nThe Last Line", name="a").blocks] == ["paragraph"] * 2


def test_sentences_end_at_blanks_and_at_cjk_stops() -> None:
    for text, count in (
        ("[![Build](http://x/y.svg)](http://x) One. [![Two](http://z)](http://z).", 2),
        ("Dr. Smith came at 3 p.m. on Monday. He left.", 2),
        ("温度過高。温度過高！次。", 3),
        ("console.log('first.'); done", 1),
    ):
        spans = list(sentence_spans(text, 0, len(text)))
        assert len(spans) == count, [text[start:end] for start, end in spans]


@pytest.mark.parametrize("text", ["!?" * 20_000, "a.b." * 20_000, "A. " * 20_000, '"Hi." ' * 10_000, "x" * 100_000])
def test_sentence_finding_is_linear_and_loses_nothing(text: str) -> None:
    began = time.perf_counter()
    spans = list(sentence_spans(text, 0, len(text)))
    assert time.perf_counter() - began < 10
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())
