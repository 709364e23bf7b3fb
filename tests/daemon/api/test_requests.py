"""Parameters: read strictly, every error with the name of its field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragd.daemon.requests import (
    GetRequest,
    Reading,
    parse_forget,
    parse_get,
    parse_preview,
    parse_search,
    parse_since,
    parse_sync,
    parse_why,
)
from ragd.store.errors import FilterError
from ragd.store.types import Filters

NOW = datetime(2024, 5, 1, 12, 30, tzinfo=timezone(timedelta(hours=2)))


def test_defaults_and_every_option() -> None:
    request = parse_search({"query": "x"}, NOW)
    assert (request.k, request.mode, request.expand, request.filters) == (5, "hybrid", "none", Filters())
    request = parse_search(
        {
            "query": "x", "k": 7, "mode": "dense", "expand": "parent", "root": ["r"], "path": "*.md",
            "type": [], "kind": ["a", "b"], "language": ["en"], "label": ["l"], "tag": ["t"], "page": 2,
            "since": "7d",
        },
        NOW,
    )  # fmt: skip
    since = int((NOW - timedelta(days=7)).timestamp()) * 10**9
    assert (request.k, request.mode, request.expand) == (7, "dense", "parent")
    assert request.filters == Filters(("r",), ("*.md",), (), ("a", "b"), ("en",), ("l",), ("t",), 2, since)


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "query"),
        ({"query": 5}, "query"),
        ({"query": "x" * 20_001}, "query"),
        ({"query": "x", "limit": 5}, "limit"),
        ({"query": "x", "k": 0}, "k"),
        ({"query": "x", "k": 1001}, "k"),
        ({"query": "x", "k": "many"}, "k"),
        ({"query": "x", "k": True}, "k"),
        ({"query": "x", "k": 2.5}, "k"),
        ({"query": "x", "mode": "fuzzy"}, "mode"),
        ({"query": "x", "expand": "all"}, "expand"),
        ({"query": "x", "type": [5]}, "type"),
        ({"query": "x", "type": {"a": 1}}, "type"),
        ({"query": "x", "path": ["/"]}, "path"),
        ({"query": "x", "page": 0}, "page"),
        ({"query": "x", "page": "one"}, "page"),
        ({"query": "x", "since": "yesterday"}, "since"),
        ({"query": "x", "since": 7}, "since"),
        ({"query": "x", "": 1}, ""),
    ],
)
def test_fault_g3_an_unusable_value_names_its_field(params: dict[str, Any], field: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_search(params, NOW)
    assert caught.value.field == field
    assert str(caught.value)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(["query", "k", "type", "page", "since", "path", "x"]), ANYTHING))
def test_whatever_comes_it_is_a_request_or_a_filter_error(params: dict[str, Any]) -> None:
    try:
        parse_search(params, NOW)
    except FilterError as error:
        assert isinstance(error.field, str)  # noqa: PT017 - both outcomes are right, each in its shape


def test_text_utf8_cannot_carry_is_shown_or_replaced() -> None:
    assert parse_search({"query": "a\ud800b"}, NOW).query == "a?b"
    assert parse_get({"path": "/caf\udce9.md"}).readings == (Reading("/caf\\xe9.md"),)
    assert parse_sync({"paths": ["/caf\udce9"]}) == ("/caf\\xe9",)


# --- since


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-04-01", datetime(2024, 3, 31, 22, tzinfo=UTC)),
        ("2024-04-01T10:00:00Z", datetime(2024, 4, 1, 10, tzinfo=UTC)),
        ("2024-04-01T10:00:00.5+02:00", datetime(2024, 4, 1, 8, 0, 0, 500_000, tzinfo=UTC)),
        ("2024-04-01 10:00", datetime(2024, 4, 1, 8, tzinfo=UTC)),
        ("7d", datetime(2024, 4, 24, 10, 30, tzinfo=UTC)),
        ("2w", datetime(2024, 4, 17, 10, 30, tzinfo=UTC)),
        ("12h", datetime(2024, 4, 30, 22, 30, tzinfo=UTC)),
        (" 30m ", datetime(2024, 5, 1, 10, 0, tzinfo=UTC)),
        ("1969-12-31T23:59:59Z", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_since_is_a_time_a_date_in_the_clients_zone_or_an_age(text: str, expected: datetime) -> None:
    assert parse_since(text, NOW) == int(expected.timestamp() * 1000) * 10**6


@pytest.mark.parametrize("far", ["9999-12-31", "2300-01-01T00:00:00Z", "0001-01-02"])
def test_since_stays_within_what_the_catalog_can_hold(far: str) -> None:
    assert -(2**63) <= parse_since(far, NOW) < 2**63


@pytest.mark.parametrize("text", ["", "7", "d", "7y", "-7d", "999999w", "2024-13-01", "now", "0000-01-01"])
def test_since_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_since(text, NOW)
    assert caught.value.field == "since"


# --- get and the others


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"path": "/a.md"}, (Reading("/a.md"),)),
        ({"path": "/a.md", "start": "3", "end": "5"}, (Reading("/a.md", 3, 5),)),
        ({"path": "/a.md", "start": 3}, (Reading("/a.md", 3, None),)),
        ({"path": "/a.md", "end": 3}, (Reading("/a.md", 1, 3),)),
        ({"path": "/a.md:3-5"}, (Reading("/a.md:3-5"), Reading("/a.md", 3, 5))),
        ({"path": "/a.md:7"}, (Reading("/a.md:7"), Reading("/a.md", 7, 7))),
        ({"path": "/a.md:0-5"}, (Reading("/a.md:0-5"),)),
        ({"path": "/a.md:5-3"}, (Reading("/a.md:5-3"),)),
        ({"path": "C:/b:1:2-3"}, (Reading("C:/b:1:2-3"), Reading("C:/b:1", 2, 3))),
        ({"path": "/a\n.md:2-3"}, (Reading("/a\n.md:2-3"), Reading("/a\n.md", 2, 3))),
    ],
)
def test_lines_of_a_path_are_read_from_its_end(params: dict[str, Any], expected: tuple[Reading, ...]) -> None:
    assert parse_get(params).readings == expected


def test_a_chunk_by_its_id() -> None:
    assert parse_get({"id": "x", "neighbours": "2"}) == GetRequest(id="x", neighbours=2)
    assert parse_get({"id": "x", "parent": "true", "path": None}) == GetRequest(id="x", parent=True)


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "path"),
        ({"id": "x", "path": "y"}, "path"),
        ({"id": "x", "start": 1}, "start"),
        ({"id": "x", "parent": True, "neighbours": 1}, "neighbours"),
        ({"path": "x", "parent": True}, "parent"),
        ({"path": "x", "neighbours": 1}, "neighbours"),
        ({"path": "x", "start": 5, "end": 3}, "end"),
        ({"path": "x", "start": 0}, "start"),
        ({"path": ""}, "path"),
        ({"id": "x", "neighbours": -1}, "neighbours"),
        ({"path": "x", "lines": "1-2"}, "lines"),
    ],
)
def test_what_does_not_go_together_is_refused(params: dict[str, Any], field: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_get(params)
    assert caught.value.field == field


def test_the_other_requests() -> None:
    assert parse_sync({}) == ()
    assert parse_sync({"paths": ["a", "b"]}) == ("a", "b")
    assert parse_why({"path": "a"}) == "a"
    preview = parse_preview({"path": "a", "chunker": "prose", "set": {"target_tokens": 100}})
    assert (preview.path, preview.chunker, preview.settings) == ("a", "prose", {"target_tokens": 100})
    assert parse_forget({"confirm": "notes"}).confirm == "notes"
    for parse, params, field in (
        (parse_sync, {"path": "a"}, "path"),
        (parse_sync, {"paths": [1]}, "paths"),
        (parse_why, {}, "path"),
        (parse_preview, {"path": "a", "set": 5}, "set"),
        (parse_forget, {}, "path"),
        (parse_forget, {"path": "a", "confirm": "b"}, "path"),
    ):
        with pytest.raises(FilterError) as caught:
            parse(params)  # type: ignore[operator]
        assert caught.value.field == field
