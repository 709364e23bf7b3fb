"""Reciprocal rank fusion: ranks alone decide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragd.store.fusion import fuse

LISTS = st.dictionaries(
    st.sampled_from(["dense", "lexical", "third"]),
    st.lists(st.sampled_from("abcdefgh"), unique=True),
    max_size=3,
)


def test_the_score_is_the_formula_of_the_paper() -> None:
    fused = dict(fuse({"dense": ["a", "b"], "lexical": ["b", "c"]}, k0=60))
    best = 2 / 61
    assert fused["b"] == pytest.approx((1 / 62 + 1 / 61) / best)
    assert fused["a"] == pytest.approx((1 / 61) / best)
    assert fused["c"] == pytest.approx((1 / 62) / best)


def test_what_every_list_puts_first_has_score_1() -> None:
    assert fuse({"dense": ["a", "b"], "lexical": ["a", "c"]})[0] == ("a", 1.0)


def test_the_best_of_one_list_is_not_lost_behind_the_middle_of_both() -> None:
    """Most chunks with a few common words of the question stand somewhere in both lists."""
    middle = [f"m{number}" for number in range(48)]
    lists = {"dense": ["meant", "other", *middle], "lexical": ["named", "another", *reversed(middle)]}
    assert {key for key, _ in fuse(lists)[:2]} == {"meant", "named"}


def test_weights_move_a_list() -> None:
    lists = {"dense": ["a", "b"], "lexical": ["b", "a"]}
    assert fuse(lists, weights={"dense": 2.0})[0][0] == "a"
    assert fuse(lists, weights={"lexical": 2.0})[0][0] == "b"
    with pytest.raises(ValueError, match="negative"):
        fuse(lists, weights={"dense": -1.0})


def test_ties_are_broken_by_the_earlier_list() -> None:
    assert [key for key, _ in fuse({"dense": ["b", "x"], "lexical": ["a", "y"]})] == ["b", "a", "x", "y"]


@given(LISTS)
def test_scores_fall_with_rank_and_lie_in_0_to_1(lists: dict[str, list[str]]) -> None:
    fused = fuse(lists)
    assert {key for key, _ in fused} == {key for ids in lists.values() for key in ids}
    scores = [score for _, score in fused]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 + 1e-12 for score in scores)


@given(LISTS)
def test_moving_up_in_one_list_never_lowers_a_score(lists: dict[str, list[str]]) -> None:
    before = dict(fuse(lists))
    for name, ids in lists.items():
        for place in range(1, len(ids)):
            moved = [*ids[: place - 1], ids[place], ids[place - 1], *ids[place + 1 :]]
            assert dict(fuse({**lists, name: moved}))[ids[place]] >= before[ids[place]] - 1e-12
