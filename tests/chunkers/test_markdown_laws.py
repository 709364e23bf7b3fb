"""Laws of Markdown chunks as properties: whole fences, headings with their bodies, prefixes that repeat nothing."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ragd.chunkers.parsers.markdown import parse
from ragd.chunkers.tokens import PlainCounter

_WORD = st.sampled_from(["alpha", "beta", "gamma", "delta", "kernel", "query", "signal", "window"])
_SENTENCE = st.lists(_WORD, min_size=3, max_size=15).map(lambda words: " ".join(words).capitalize() + ".")
_HEADING = st.tuples(st.integers(1, 6), st.lists(_WORD, min_size=1, max_size=4)).map(
    lambda pair: "#" * pair[0] + " " + " ".join(pair[1])
)
_PARAGRAPH = st.lists(_SENTENCE, min_size=1, max_size=7).map(" ".join)
_LEAD_IN = _SENTENCE.map(lambda text: text[:-1] + ":")
_LIST = st.lists(_SENTENCE, min_size=1, max_size=6).map(lambda items: "\n".join("- " + item for item in items))
_FENCE = st.lists(st.sampled_from(["x = 1", "# comment", "", "call(a, b)"]), min_size=1, max_size=60).map(
    lambda lines: "```py\n" + "\n".join(lines) + "\n```"
)
_TABLE = st.lists(_WORD, min_size=1, max_size=60).map(
    lambda words: "| a | b |\n|---|---|\n" + "\n".join(f"| {word} | {n} |" for n, word in enumerate(words))
)
_DOCUMENT = st.lists(
    st.one_of(_HEADING, _HEADING, _PARAGRAPH, _PARAGRAPH, _LEAD_IN, _LIST, _FENCE, _TABLE), min_size=1, max_size=30
).map("\n\n".join)


def _tree_path(text: str, line: int) -> tuple[str, ...]:
    """Path of the headings that hold on a 1-based line, by the CommonMark parser alone."""
    trail: list[tuple[int, str]] = []
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.map is not None and token.map[0] < line:
            level = int(token.tag[1])
            trail = [entry for entry in trail if entry[0] < level] + [(level, inline.content)]
    return tuple(content for _, content in trail)


@pytest.mark.timeout(240)
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=_DOCUMENT, limit=st.integers(60, 256))
def test_laws_of_markdown(tools: SimpleNamespace, text: str, limit: int) -> None:
    counter = PlainCounter(special_tokens=2)
    result = tools.laws(text.encode(), counter=counter, limit=limit)
    ceiling = limit - 2
    blocks = parse(text, name="a.md").blocks
    headings = {block.start: block.text for block in blocks if block.kind == "heading"}
    last_heading = max(headings, default=-1)
    owner = {
        block.start: chunk.ordinal
        for block in blocks
        for chunk in result.chunks
        if chunk.spans[0][0] <= block.start < chunk.spans[-1][1]
    }
    assert len(owner) == len(blocks)
    for chunk in result.chunks:
        start, end = chunk.spans[0][0], chunk.spans[-1][1]
        inside = [(at, name) for at, name in headings.items() if start <= at < end]
        title_line = chunk.prefix.split("\n")[0].split(" > ") if chunk.prefix else []
        assert not set(title_line) & {name for _, name in inside}, "no heading of the body is in the prefix"
        assert len(set(title_line)) == len(title_line), "nothing stands twice in the prefix"
        if "|" not in chunk.prefix and "```" not in chunk.prefix:
            assert counter.count(chunk.prefix) <= ceiling // 4
        assert counter.count(chunk.prefix) <= ceiling // 2
        for line in range(chunk.start_line, chunk.end_line + 1):
            path = _tree_path(text, line)
            if not inside:
                assert path == chunk.section
            assert path[: len(chunk.section)] == chunk.section or inside, "the section holds for the whole body"
    for before, after in pairwise(blocks):
        if before.kind == "heading" and after.kind != "heading":
            whole = counter.count(text[before.start : after.end])
            if whole <= ceiling and before.start != last_heading:
                assert owner[before.start] == owner[after.start], "a heading is with its first block"
    for block in blocks:
        if block.kind == "fence" and counter.count(text[block.start : block.end]) <= ceiling:
            (holder,) = [chunk for chunk in result.chunks if chunk.spans[0][0] <= block.start < chunk.spans[-1][1]]
            assert block.end <= holder.spans[-1][1], "a fence that fits is whole"
