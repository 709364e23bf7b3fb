"""The packing engine by itself: whole atoms, glue, anchors, fragments, work."""

from __future__ import annotations

import random
import time
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragd.chunkers.anchors import LONGEST_TARGETS, WINDOW_TARGETS, anchors
from ragd.chunkers.document import GLUED, Atom, Outline, Region
from ragd.chunkers.limits import Limits, limits_of
from ragd.chunkers.packing import Run, pack
from ragd.chunkers.records import CutSettings, ModelBudget
from ragd.chunkers.tokens import ModelTokenCounter, PlainCounter

_LIMITS = Limits(target_tokens=40, ceiling_tokens=50, prefix_tokens=12, overlap_tokens=5, reserved_tokens=2)


def _outline(sizes: list[int], costs: list[float]) -> tuple[str, Outline]:
    """A text of paragraphs with that many words, and its atoms."""
    atoms: list[Atom] = []
    text = ""
    for number, (size, cost) in enumerate(zip(sizes, costs, strict=True)):
        start = len(text)
        text += " ".join(f"w{number}" for _ in range(size))
        atoms.append(Atom(start, len(text), cost, "paragraph"))
        text += "\n\n"
    return text, Outline([Region(atoms)])


def _packed(text: str, outline: Outline, limits: Limits = _LIMITS) -> list[Run]:
    return pack(outline, text, PlainCounter(), limits, lambda _: 0)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 130), st.sampled_from([0.0, 0.05, 0.35, 2.0, 5.0, GLUED])), max_size=60),
    st.integers(8, 60),
)
def test_law_every_atom_is_in_one_run_and_no_run_of_many_is_over_the_ceiling(
    parts: list[tuple[int, float]], ceiling: int
) -> None:
    text, outline = _outline([size for size, _ in parts], [cost for _, cost in parts])
    limits = Limits(max(1, ceiling * 4 // 5), ceiling, ceiling // 4, 2, 2)
    runs = _packed(text, outline, limits)
    spans = [(atom.start, atom.end) for run in runs for atom in run.atoms]
    assert spans == sorted(spans)
    assert [word for start, end in spans for word in text[start:end].split()] == text.split()
    assert all(run.body_tokens <= ceiling for run in runs)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 45), min_size=1, max_size=60))
def test_law_no_fragment_stands_where_a_neighbour_fits(sizes: list[int]) -> None:
    text, outline = _outline(sizes, [0.05] * len(sizes))
    runs = _packed(text, outline)
    for before, after in pairwise(runs):
        if min(before.body_tokens, after.body_tokens) < 0.2 * _LIMITS.target_tokens:
            assert before.body_tokens + after.body_tokens > _LIMITS.ceiling_tokens


def test_an_atom_that_fits_is_never_divided() -> None:
    text, outline = _outline([50, 3, 50, 49, 2], [0.05] * 5)
    whole = {(atom.start, atom.end) for atom in outline.regions[0].atoms}
    assert {(atom.start, atom.end) for run in _packed(text, outline) for atom in run.atoms} == whole


def _names(text: str, runs: list[Run]) -> list[list[str]]:
    """For each run the first words of its atoms."""
    return [[text[atom.start : atom.end].split()[0] for atom in run.atoms] for run in runs]


def test_glue_holds_while_it_fits_and_breaks_where_it_must() -> None:
    text, outline = _outline([30, 15, 20, 30], [0.0, 0.05, GLUED, 0.05])
    assert _names(text, _packed(text, outline)) == [["w0"], ["w1", "w2"], ["w3"]]
    text, outline = _outline([30, 5, 48], [0.0, 0.05, GLUED])
    assert _names(text, _packed(text, outline)) == [["w0", "w1"], ["w2"]]


def test_regions_are_never_crossed() -> None:
    text, outline = _outline([5] * 10, [0.05] * 10)
    atoms = outline.regions[0].atoms
    runs = _packed(text, Outline([Region([atom]) for atom in atoms]))
    assert len(runs) == 10


def _keys(count: int, seed: int) -> list[tuple[int, int] | None]:
    source = random.Random(seed)
    return [(1, source.getrandbits(64)) for _ in range(count)]


def test_law_an_anchor_depends_on_its_window_alone() -> None:
    keys, weights = _keys(400, 1), [20] * 400
    found = anchors(keys, weights, 100)
    assert len(found) > 50
    changed = list(keys)
    changed[200] = (1, 0)
    moved = set(found) ^ set(anchors(changed, weights, 100))
    assert moved
    reach = (LONGEST_TARGETS + 2 * WINDOW_TARGETS) * 100 / 20
    assert all(abs(index - 200) <= reach for index in moved)


def test_a_stretch_without_anchors_is_split_all_the_same() -> None:
    rising: list[tuple[int, int] | None] = [(1, number) for number in range(1000)]
    found = [0, *anchors(rising, [10] * 1000, 100), 1000]
    assert max(high - low for low, high in pairwise(found)) <= LONGEST_TARGETS * 10 + 1
    assert anchors([None] * 1000, [10] * 1000, 100) == []


def test_limits_take_instruction_and_special_tokens_off() -> None:
    counter = PlainCounter(special_tokens=2)
    limits = limits_of(CutSettings(), counter, ModelBudget(256, "a b c d"))
    assert (limits.ceiling_tokens, limits.target_tokens, limits.prefix_tokens) == (250, 200, 62)
    assert limits_of(CutSettings(target_tokens=90, max_tokens=100), counter, ModelBudget(8192)).ceiling_tokens == 100
    with pytest.raises(ValueError, match="no room"):
        limits_of(CutSettings(), counter, ModelBudget(10, "a b c d"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "One sentence of words stands here. " * 20_000),
        ("a.md", "- item\n" * 60_000),
        ("a.md", "a\n\n" * 30_000),
        ("a.txt", "x" * 700_000),
        ("a.txt", "word, " * 100_000),
        ("a.md", "```\n" + "line of code\n" * 40_000),
        ("a.txt", "\u0301" * 300_000),
        ("a.txt", "温" * 300_000),
    ],
)
@pytest.mark.timeout(120)
def test_law_the_work_is_linear(tools: SimpleNamespace, name: str, text: str) -> None:
    """Tokenizer calls: each character a few times, and never in one huge string."""
    counter = tools.CountingCounter()
    result = tools.cut(text, name, counter=counter)
    assert result.chunks
    assert counter.characters <= 8 * len(text) + 10_000
    assert counter.longest <= 32_000


@pytest.mark.timeout(240)
def test_law_totality_for_huge_lines(tools: SimpleNamespace, model_counter: ModelTokenCounter) -> None:
    """Five megabytes in one line, with the real tokenizer, in bounded time."""
    began = time.process_time()
    for text in ("lorem ipsum dolor " * 280_000, "x" * 5_000_000):
        result = tools.cut(text, "a.txt", counter=model_counter)
        assert result.chunks[-1].spans[-1][1] >= len(text) - 1
    assert time.process_time() - began < 150


def test_deep_nesting_ends(tools: SimpleNamespace) -> None:
    for text in (">" * 10_000 + " deep", "- " * 10_000 + "deep", "\n".join("  " * n + "- a" for n in range(1500))):
        tools.laws(text.encode(), "a.md")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("unit", ["```\n", "", "# t\n\n| a | b |\n|---|---|\n"])
def test_law_the_time_grows_with_the_length_alone(tools: SimpleNamespace, unit: str) -> None:
    """Four times the lines in less than nine times the time: quadratic work would need sixteen."""

    def seconds(lines: int) -> float:
        began = time.process_time()
        tools.cut(unit + "| line | words |\n" * lines, "a.md")
        return time.process_time() - began

    seconds(1000)
    assert seconds(60_000) < 9 * seconds(15_000) + 1
