"""Edit locality: what one edit changes, counted in chunk ids, with the default overlap on."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from ragd.chunkers.records import Cut
from ragd.chunkers.tokens import ModelTokenCounter

_WORDS = [
    *("anchor", "basin", "carry", "delta", "engine", "field", "garden", "harbour", "index", "journal", "kernel"),
    *("ladder", "market", "number", "orbit", "packet", "query", "river", "signal", "table", "update", "vector"),
    *("window", "yellow", "zone", "between", "through", "without", "against", "because", "a", "of", "the", "to", "in"),
]


class Remembering:
    """The model's counter, asked once for each text: a test cuts nearly the same file hundreds of times."""

    def __init__(self, counter: ModelTokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}
        self.fingerprint = counter.fingerprint
        self.special_tokens = counter.special_tokens

    def count(self, text: str) -> int:
        return self.count_many([text])[0]

    def count_many(self, texts: Sequence[str]) -> list[int]:
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(missing, self._counter.count_many(missing), strict=True))
        return [self._known[text] for text in texts]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return self._counter.offsets(text)


@pytest.fixture(scope="module")
def counter(model_counter: ModelTokenCounter) -> Remembering:
    return Remembering(model_counter)


def _sentence(source: random.Random) -> str:
    return " ".join(source.choice(_WORDS) for _ in range(source.randint(6, 22))).capitalize() + "."


def _paragraph(source: random.Random) -> str:
    return " ".join(_sentence(source) for _ in range(source.randint(1, 6)))


def _document(source: random.Random, kind: str, blocks: int) -> list[str]:
    """Blocks of a file with many sections, with few headings, or flat."""
    parts = [] if kind == "flat" else ["# " + _sentence(source)[:-1]]
    until_heading = 0
    for number in range(blocks):
        if kind != "flat" and until_heading <= 0:
            parts.append(("## " if number % 3 == 0 else "### ") + _sentence(source)[:-1])
            until_heading = source.randint(3, 9) if kind == "many" else source.randint(60, 90)
        draw = source.random()
        if kind != "flat" and draw < 0.1:
            parts.append("\n".join("- " + _sentence(source) for _ in range(source.randint(2, 8))))
        elif kind != "flat" and draw < 0.18:
            lines = [f"x{source.randint(0, 99)} = {source.choice(_WORDS)}()" for _ in range(source.randint(3, 15))]
            parts.append("```python\n" + "\n".join(lines) + "\n```")
        else:
            parts.append(_paragraph(source))
        until_heading -= 1
    return parts


def _edited(source: random.Random, parts: list[str], kinds: Sequence[str]) -> list[str]:
    """The document with one paragraph inserted, deleted or changed."""
    edited = list(parts)
    kind = source.choice(kinds)
    index = source.choice([i for i, part in enumerate(parts) if i and part[0].isalpha()])
    if kind == "insert":
        edited.insert(index, _paragraph(source))
    elif kind == "delete":
        del edited[index]
    elif source.random() < 0.5:
        edited[index] = _paragraph(source)
    else:
        words = edited[index].split(" ")
        words[source.randrange(len(words))] = "changed"
        edited[index] = " ".join(words)
    return edited


def _changes(before: Cut, after: Cut) -> tuple[int, int]:
    """Ids that are new, ids that are gone."""
    old, new = ({chunk.id for chunk in result.chunks} for result in (before, after))
    return len(new - old), len(old - new)


@pytest.mark.timeout(300)
def test_law_a_changed_paragraph_of_a_long_file(tools: SimpleNamespace, counter: Remembering) -> None:
    """300 chunks, one paragraph changed in the middle: at most 4 ids new and 4 gone, median over 50 at most 2."""
    source = random.Random(7)
    parts = _document(source, "many", 700)
    before = tools.cut("\n\n".join(parts), counter=counter)
    assert 250 <= len(before.chunks) <= 400
    changes = [
        _changes(before, tools.cut("\n\n".join(_edited(source, parts, ["change"])), counter=counter)) for _ in range(50)
    ]
    assert max(new for new, _ in changes) <= 4
    assert max(gone for _, gone in changes) <= 4
    assert statistics.median(new for new, _ in changes) <= 2
    assert statistics.median(gone for _, gone in changes) <= 2


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "name"), [("many", "a.md"), ("few", "a.md"), ("flat", "a.md"), ("flat", "a.txt")])
def test_law_edits_at_random_places(tools: SimpleNamespace, counter: Remembering, kind: str, name: str) -> None:
    """Insert, delete or change at 200 places: median at most 2, p95 at most 4, never more than 8."""
    source = random.Random(11)
    parts = _document(source, kind, 120)
    before = tools.cut("\n\n".join(parts), name, counter=counter)
    changes = sorted(
        max(
            _changes(
                before,
                tools.cut("\n\n".join(_edited(source, parts, ["insert", "delete", "change"])), name, counter=counter),
            )
        )
        for _ in range(200)
    )
    assert changes[100] <= 2
    assert changes[190] <= 4
    assert changes[-1] <= 8


@pytest.mark.parametrize("front", ["", "---\ntitle: Named\n---\n\n"])
@pytest.mark.parametrize("kind", ["many", "few", "flat"])
def test_law_a_line_at_the_top_changes_at_most_three_ids(
    tools: SimpleNamespace, counter: Remembering, kind: str, front: str
) -> None:
    for seed in range(8):
        source = random.Random(seed)
        text = "\n\n".join(_document(source, kind, 100))
        before = tools.cut(front + text, counter=counter)
        for line in ("One more line at the top.\n\n", "One more line at the top.\n", "\n", "<!-- note -->\n"):
            new, gone = _changes(before, tools.cut(front + line + text, counter=counter))
            assert new <= 3
            assert gone <= 3


def test_law_appending_changes_only_the_end(tools: SimpleNamespace, counter: Remembering) -> None:
    for seed in range(10):
        source = random.Random(seed)
        parts = _document(source, "flat", 80)
        before = tools.cut("\n\n".join(parts), "a.txt", counter=counter)
        after = tools.cut("\n\n".join([*parts, _paragraph(source)]), "a.txt", counter=counter)
        kept = [chunk.id for chunk in before.chunks[:-6]]
        assert [chunk.id for chunk in after.chunks[: len(kept)]] == kept


def test_law_moving_a_section_changes_no_id_inside(tools: SimpleNamespace, counter: Remembering) -> None:
    source = random.Random(3)
    sections = [
        "## " + _sentence(source) + "\n\n" + "\n\n".join(_paragraph(source) for _ in range(12)) for _ in range(6)
    ]
    before = tools.cut("# Top\n\n" + "\n\n".join(sections), counter=counter)
    after = tools.cut("# Top\n\n" + "\n\n".join([*sections[1:4], sections[0], *sections[4:]]), counter=counter)
    assert max(_changes(before, after)) <= 2
