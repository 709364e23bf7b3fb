"""Words: what becomes a term, and what BM25 finds with it."""

from __future__ import annotations

import pytest
from reading_kit import World

from ragd.store import lexical
from ragd.store.lexical import MAX_TERMS, match_terms, query_terms, telling_terms


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("plain words", ["plain", "words"]),
        ("what is the answer", ["answer"]),
        ("to be or not to be", ["to", "be", "or", "not"]),
        ("parse_http_request", ["parse_http_request", "parse", "http", "request"]),
        ("parseHTTPRequest2", ["parseHTTPRequest2", "parse", "HTTP", "Request"]),
        ("docs/a.md", ["docs/a.md", "docs", "md"]),
        ('say "hello" AND OR', ["say", "hello"]),
        ("don't", ["don't", "don"]),
        ("Word word WORD", ["Word"]),
        ("", []),
        ("?!*()", []),
        ("\ud800 ok", ["ok"]),
    ],
)
def test_terms_of_a_query(query: str, terms: list[str]) -> None:
    assert query_terms(query) == terms


def test_terms_are_quoted_and_bounded() -> None:
    assert match_terms("a OR b") == ['"b"']
    assert match_terms("東京") == ['"東京" *']
    assert match_terms("...") == []
    assert len(match_terms(" ".join(f"w{number}" for number in range(10_000)))) == MAX_TERMS


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("parse_http", "def parse_http_request(): pass"),
        ("request", "def parse_http_request(): pass"),
        ("parse http request", "def parse_http_request(): pass"),
        ("parseHttp", "we parse the http body"),
        ("東京", "東京タワーへ行く"),
        ("cafe", "ein Café in Paris"),
        ("CAFÉ", "ein cafe in Paris"),
        ("192.168.0.1", "the router is at 192.168.0.1"),
        ("C++", "written in C++ long ago"),
    ],
)
def test_a_word_is_found_by_its_parts(world: World, query: str, text: str) -> None:
    world.put("a.md", text, title="other")
    world.put("b.md", "nothing of the kind", title="other")
    assert [hit["rel"] for hit in world.search(query, mode="lexical")["hits"]] == ["a.md"]


def test_a_word_in_the_heading_counts_more_than_in_the_text(world: World) -> None:
    world.put("text.md", "zebra and some more words here", title="plain")
    world.put("heading.md", "horse and some more words here", title="zebra")
    hits = world.search("zebra", mode="lexical")["hits"]
    assert [hit["rel"] for hit in hits] == ["heading.md", "text.md"]
    assert hits[0]["scores"]["lexical"] > hits[1]["scores"]["lexical"] > 0


def test_words_that_are_nearly_everywhere_are_looked_for_only_when_needed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexical, "LARGE_CHUNKS", 8)
    for number in range(8):
        world.put(f"{number}.md", f"everywhere filler{number}" + (" zebra" if number == 3 else ""))
    with world.store.snapshot() as snapshot:
        live = world.store.live
        assert telling_terms(snapshot, live, ['"everywhere"', '"zebra"']) == ['"zebra"']
        assert telling_terms(snapshot, live, ['"everywhere"']) == ['"everywhere"']
        assert telling_terms(snapshot, live, ['"everywhere"', '"filler"']) == ['"filler"']
    assert [hit["rel"] for hit in world.search("everywhere zebra", 1, "lexical")["hits"]] == ["3.md"]
    hits = world.search("everywhere zebra", 8, "lexical")["hits"]
    assert len(hits) == 8
    assert hits[0]["rel"] == "3.md"
