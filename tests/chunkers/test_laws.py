"""The laws of chunks as properties, over random sizes and hostile texts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragd.chunkers.tokens import ModelTokenCounter

_SNIPPETS = [
    "# Title",
    "## Section two",
    "### Deep *one*",
    "#### h4",
    "Setext\n===",
    "Under\n---",
    "---",
    "***",
    "```py\nx = 1\n\ny = 2\n```",
    "~~~\n# no heading\n~~~",
    "````\n```\n````",
    "```\nnever closed",
    "- item\n- item two\n  - nested\n\n    para",
    "1. one\n2. two",
    "> quote\n>\n> ## not a section\n> - li",
    "> lazy\nline",
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
    "| h1 | h2 |\n| h3 | h4 |\n|:--|--:|\n| 1 | 2 |",
    "[ref]: http://example.org 'title'",
    "[^1]: note\n    more",
    "<div>\n<p>html</p>\n</div>",
    "<!-- comment",
    "<details>",
    "    indented code",
    "\tcode\t",
    "lead-in:",
    "The end mark is <|endoftext|> and [SEP] [CLS] [PAD] <s> </s>.",
    "e\u0301e\u0301e\u0301",
    "👩🏽‍🔬🧪👨‍👩‍👧‍👦",
    "שלום עולם. مرحبا بالعالم.",
    "温度過高。温度過高！もう一度？",
    "a\u200bb\u00a0c\u2028d\x85e",
    "a" * 300,
    "word " * 120,
    "Dr. Smith said: no. Yes! Really? (Ok.)",
    "!?" * 60,
    "\x00\x00",
    "\ufeff",
    "a\rb\r\nc\n\rd",
    "\ud7ff\ue000",
    "x" + "\u0301" * 200,
    ".",
    "\f",
    "\x0b",
    "|" * 50,
    ">" * 40 + " deep",
    "- " * 30 + "deep",
    "* * *",
    "***bold** text",
    "Chapter 1",
    "CHAPTER II. The Storm",
    "—",
    "…",
    "1.",
    "-",
    ">",
    "#",
    "##",
]
_GAPS = ["\n", "\n\n", "\r\n", "\r\n\r\n", "\r", "\r\r", "\n\n\n\n", " ", "", "\n \t\n", "\n> ", "\n  "]

_TEXTS = st.lists(
    st.tuples(st.one_of(st.sampled_from(_SNIPPETS), st.text(max_size=40)), st.sampled_from(_GAPS)), max_size=25
).map(lambda parts: "".join(part + gap for part, gap in parts).encode("utf-8", "surrogatepass"))
_BYTES = st.one_of(
    _TEXTS, st.binary(max_size=300), st.builds(lambda a, b, c: a + b + c, _TEXTS, st.binary(max_size=8), _TEXTS)
)
_NAMES = st.sampled_from(["a.md", "a.txt", "notes", "x.conf", "x.rst", "y.unknown", "é and a long name.md"])
_FREELY = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.timeout(300)
@_FREELY
@given(
    data=_BYTES,
    name=_NAMES,
    limit=st.integers(7, 300),
    target=st.integers(1, 600),
    most=st.integers(1, 900),
    overlap=st.floats(0, 0.99),
    prefix=st.booleans(),
    chunker=st.sampled_from(["auto", "paragraph", "structure", "blocks"]),
)
def test_laws_hold_for_hostile_texts(
    tools: SimpleNamespace,
    data: bytes,
    name: str,
    limit: int,
    target: int,
    most: int,
    overlap: float,
    prefix: bool,
    chunker: str,
) -> None:
    tools.laws(
        data,
        name,
        limit=limit,
        target_tokens=target,
        max_tokens=most,
        overlap_ratio=overlap,
        prefix=prefix,
        chunker=chunker,
    )


@pytest.mark.timeout(300)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=_BYTES, name=_NAMES, limit=st.integers(9, 256))
def test_laws_hold_with_the_models_tokenizer(
    tools: SimpleNamespace, model_counter: ModelTokenCounter, data: bytes, name: str, limit: int
) -> None:
    tools.laws(data, name, counter=model_counter, limit=limit, instruction="passage: ")
