"""Search as a whole: order, modes, notices, near-duplicates, what a hit says of its place."""

from __future__ import annotations

import base64
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reading_kit import World, identity, vector_of

from ragd.store.errors import DamagedError, ModelError, ModelLoadingError, StoreError
from ragd.store.search import Model
from ragd.store.types import Client, VectorRow

FIELDS = {
    "id", "path", "rel", "root", "type", "kind", "title", "section", "start_line", "end_line", "page",
    "locator", "url", "modified", "labels", "tags", "score", "scores", "text", "stale", "also_at",
}  # fmt: skip


def rels(answer: dict[str, object]) -> list[str]:
    return [hit["rel"] for hit in answer["hits"]]  # type: ignore[attr-defined]


def test_an_answer_has_the_fields_of_the_contract(world: World) -> None:
    world.put("a.md", "the quick brown fox", tags=["pets"])
    answer = world.search("brown fox")
    assert set(answer) >= {"query", "hits", "mode_used", "notice", "generation", "pending", "seconds"}
    assert answer["query"] == "brown fox"
    assert answer["mode_used"] == "hybrid"
    assert answer["notice"] is None
    assert answer["generation"] == world.store.live.id
    (hit,) = answer["hits"]
    assert set(hit) >= FIELDS
    assert hit["path"] == "/home/me/notes/a.md"
    assert hit["section"] == ["Top", "24/7 desk"]
    assert hit["tags"] == ["pets"]
    assert hit["score"] == 1.0
    assert hit["scores"]["dense"] > 0.5
    assert hit["scores"]["lexical"] is not None
    assert datetime.fromisoformat(hit["modified"]).timestamp() == 1_700_000_000
    assert hit["modified"].endswith("Z")


def test_each_mode_finds_by_its_own_list(world: World) -> None:
    world.put("a.md", "alpha beta gamma")
    world.put("b.md", "gamma delta epsilon")
    assert rels(world.search("alpha", mode="lexical")) == ["a.md"]
    dense = world.search("alpha", mode="dense")
    assert rels(dense) == ["a.md", "b.md"]
    assert [hit["scores"]["lexical"] for hit in dense["hits"]] == [None, None]
    assert rels(world.search("alpha", mode="hybrid")) == ["a.md", "b.md"]
    assert world.embedder.queries == 2


def test_scores_fall_with_rank_and_stay_in_0_to_1(world: World) -> None:
    for number in range(30):
        world.put(f"{number}.md", " ".join(f"w{(number * step) % 17}" for step in range(1, 9)) + f" n{number}")
    for mode in ("hybrid", "dense", "lexical"):
        scores = [hit["score"] for hit in world.search("w1 w2 w3 w5", 20, mode)["hits"]]
        assert len(scores) > 5
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)


def test_fault_d10_similarity_is_cosine_and_falls(world: World) -> None:
    """Opposite and orthogonal texts come last, equal ones have 1.0, and no raw score leaves -1..1."""
    world.put("same.md", "red green blue")
    world.put("near.md", "red green yellow")
    world.put("far.md", "xylophone quartz")
    hits = world.search("red green blue", mode="dense")["hits"]
    cosines = [hit["scores"]["dense"] for hit in hits]
    assert [hit["rel"] for hit in hits] == ["same.md", "near.md", "far.md"]
    assert cosines[0] == pytest.approx(1.0, abs=1e-4)
    assert cosines == sorted(cosines, reverse=True)
    assert all(-1 <= cosine <= 1 for cosine in cosines)


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
def test_an_empty_store_and_an_empty_query_answer_nothing(world: World, mode: str) -> None:
    assert world.search("anything", mode=mode)["hits"] == []
    world.put("a.md", "text")
    for blank in ("", "  \n", "\t"):
        answer = world.search(blank, mode=mode)
        assert answer["hits"] == []
        assert "empty" in answer["notice"]


# --- the model


def test_while_the_model_loads_hybrid_answers_by_words_and_says_so(world: World) -> None:
    world.put("a.md", "alpha beta")
    answer = world.search("alpha", model=Model())
    assert rels(answer) == ["a.md"]
    assert answer["mode_used"] == "lexical"
    assert "loading" in answer["notice"]
    with pytest.raises(ModelLoadingError):
        world.search("alpha", mode="dense", model=Model())
    assert world.search("alpha", mode="lexical", model=Model())["notice"] is None


def test_a_model_that_cannot_be_loaded_is_no_reason_to_wait(world: World) -> None:
    world.put("a.md", "alpha beta")
    broken = Model(reason="the model is not there", is_loading=False)
    assert "not there" in world.search("alpha", model=broken)["notice"]
    with pytest.raises(ModelError) as caught:
        world.search("alpha", mode="dense", model=broken)
    assert not isinstance(caught.value, ModelLoadingError)


def test_vectors_of_another_model_are_never_compared(world: World) -> None:
    world.put("a.md", "alpha beta")
    world.put("b.md", "gamma")
    world.reopen(identity("other words"))
    assert world.store.building is not None
    world.put("a.md", "alpha beta")
    asked = len(world.index.asked)
    answer = world.search("alpha")
    assert answer["mode_used"] == "lexical"
    assert "re-embedding 1 of 2" in answer["notice"]
    assert answer["generation"] == world.store.live.id
    assert len(world.index.asked) == asked
    with pytest.raises(ModelLoadingError, match="re-embedding 1 of 2"):
        world.search("alpha", mode="dense")


def test_an_index_that_fails_leaves_words_and_is_reported(world: World) -> None:
    world.put("a.md", "alpha beta")
    world.index.fails = DamagedError("torn")
    answer = world.search("alpha")
    assert rels(answer) == ["a.md"]
    assert answer["mode_used"] == "lexical"
    assert "torn" in answer["notice"]
    assert world.failures == [world.index.fails]
    with pytest.raises(StoreError):
        world.search("alpha", mode="dense")


# --- snapshots


def test_rows_the_snapshot_does_not_know_are_no_hits_and_cost_no_hit(world: World) -> None:
    """Dead rows in the index, nearer than every live one, must not push live hits out of k."""
    for number in range(20):
        world.put(f"{number}.md", f"other words {number}")
    dead = [f"dead{number}" for number in range(200)]
    collection = world.store.live.collection
    world.index.upsert(collection, [VectorRow(key, vector_of("alpha"), {}) for key in dead])
    hits = world.search("alpha", 5, "dense")["hits"]
    assert len(hits) == 5
    assert not {hit["id"] for hit in hits} & set(dead)
    assert world.index.asked == sorted(world.index.asked)
    assert len(world.index.asked) > 1


def test_a_query_that_began_before_an_edit_still_gets_the_old_version(world: World) -> None:
    world.put("a.md", "alpha old")
    with world.store.snapshot() as snapshot:
        old = {row.text for row in snapshot.file_chunks("notes", b"a.md")}
        world.put("a.md", "alpha new")
        found = world.index.query(world.store.live.collection, world.embedder.embed_query("alpha old")[0], 10)
        seen = {row.text for row in snapshot.chunks([key for key, _ in found]).values()}
    assert old == seen == {"alpha old"}
    assert [hit["text"] for hit in world.search("alpha")["hits"]] == ["alpha new"]


def test_rows_missing_from_the_index_are_found_in_the_cache(world: World) -> None:
    ids = [world.put(f"{number}.md", f"alpha {number}")[0] for number in range(6)]
    world.index.hidden = set(ids[:3])
    assert {hit["id"] for hit in world.search("alpha", 6, "dense")["hits"]} == set(ids)


# --- near-duplicates (G1)


def test_fault_g1_equal_texts_collapse_and_name_the_other_places(world: World) -> None:
    world.put("a.md", "the passage everyone copied")
    world.put("copy.md", "the passage everyone copied")
    world.put("deep/copy.md", "the passage everyone copied", prefix="another title\n")
    for number in range(4):
        world.put(f"weak{number}.md", f"one passage {number}")
    hits = world.search("the passage everyone copied", 5)["hits"]
    assert len(hits) == 5
    assert len({hit["text"] for hit in hits}) == 5
    places = {hits[0]["rel"], *(place["rel"] for place in hits[0]["also_at"])}
    assert places == {"a.md", "copy.md", "deep/copy.md"}
    assert all(hit["also_at"] == [] for hit in hits[1:])


def test_fault_g1_two_distant_passages_of_one_file_both_appear(world: World) -> None:
    world.put("a.md", "zebra first passage", "filler one", "filler two", "zebra second thing")
    hits = world.search("zebra", 2)["hits"]
    assert {hit["text"] for hit in hits} == {"zebra first passage", "zebra second thing"}


def test_fault_g1_k_hits_though_copies_fill_every_list(world: World) -> None:
    for number in range(120):
        world.put(f"copy{number}.md", "alpha alpha alpha")
    for number in range(5):
        world.put(f"other{number}.md", f"alpha and something else {number}")
    hits = world.search("alpha", 5)["hits"]
    assert len(hits) == 5
    assert sum(hit["text"] == "alpha alpha alpha" for hit in hits) == 1
    assert len(hits[0]["also_at"]) == 20


def test_fault_g1_line_ranges_of_one_file_never_overlap_by_more_than_half(world: World) -> None:
    world.put("a.md", "alpha one\nalpha two\nalpha three", "alpha four\nfive", separator="\n")
    world.put("long.txt", *(f"alpha part {number}" for number in range(6)), separator=" ")
    hits = world.search("alpha", 20)["hits"]
    assert len(hits) == 8  # pieces of one long line are different passages
    for one in hits:
        for other in hits:
            if one is not other and one["rel"] == other["rel"] == "a.md":
                common = min(one["end_line"], other["end_line"]) - max(one["start_line"], other["start_line"]) + 1
                assert common <= 0


# --- wider texts


def test_neighbours_widen_text_and_lines_and_no_text_comes_twice(world: World) -> None:
    blocks = [f"line {number} word{number}" for number in range(9)]
    world.put("a.md", *blocks)
    (hit,) = world.search("word4", 1, "lexical", expand="neighbours")["hits"]
    assert hit["text"] == "\n\n".join(blocks[3:6])
    assert (hit["start_line"], hit["end_line"]) == (7, 11)
    lines = world.texts["notes", b"a.md"].split("\n")
    assert "\n".join(lines[hit["start_line"] - 1 : hit["end_line"]]) == hit["text"]
    hits = world.search("word3 word4 word5", 3, "lexical", expand="neighbours")["hits"]
    shown = [key for hit in hits for key in hit["ids"]]
    assert len(shown) == len(set(shown))


def test_parent_gives_the_whole_unit_once(world: World) -> None:
    blocks = ["intro", "alpha start", "alpha middle", "alpha end", "outro"]
    world.put("a.md", *blocks, parents=[[1, 2, 3]])
    world.put("b.md", "alpha elsewhere")
    hits = world.search("alpha", 2, expand="parent")["hits"]
    assert sorted(hit["text"] for hit in hits) == sorted(["\n\n".join(blocks[1:4]), "alpha elsewhere"])


# --- places (G2)


def test_fault_g2_lines_of_a_hit_are_its_text(world: World) -> None:
    blocks = [f"Zeile {number} mit Umlauten äöü\nund einer zweiten" for number in range(60)]
    blocks[45] = "hier steht zqx137\nund noch etwas"
    world.put("ä b.md", *blocks)
    (hit,) = world.search("zqx137", 1, "lexical")["hits"]
    lines = world.texts["notes", "ä b.md".encode()].split("\n")
    assert "\n".join(lines[hit["start_line"] - 1 : hit["end_line"]]) == hit["text"]
    assert hit["start_line"] <= lines.index("hier steht zqx137") + 1 <= hit["end_line"]


def test_a_name_that_is_not_utf8_is_shown_and_comes_raw(world: World) -> None:
    world.put(b"caf\xe9/\xff.md", "alpha")
    (hit,) = world.search("alpha")["hits"]
    assert hit["rel"] == "caf\\xe9/\\xff.md"
    assert base64.b64decode(hit["path_raw"]) == b"caf\xe9/\xff.md"
    assert world.search("alpha", path=("caf\\xe9/*",))["hits"] != []
    assert "path_raw" not in world.search("beta", model=Model())


def test_times_the_calendar_has_no_name_for_are_no_error(world: World) -> None:
    world.put("far.md", "alpha", mtime_ns=2**63 - 1)
    world.put("old.md", "alpha beta", mtime_ns=-(10**18))
    moments = {hit["rel"]: hit["modified"] for hit in world.search("alpha")["hits"]}
    assert moments["old.md"].startswith("1938")
    assert moments["far.md"].startswith("2262")


def test_hits_of_a_folder_that_is_away_are_marked(world: World) -> None:
    world.put("a.md", "alpha")
    world.add_root("usb", state="unavailable")
    world.put("b.md", "alpha beta", root="usb")
    answer = world.search("alpha")
    assert {hit["root"]: hit["stale"] for hit in answer["hits"]} == {"notes": False, "usb": True}
    assert "/home/me/usb" in answer["notice"]


# --- any text at all


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.one_of(
        st.text(max_size=60),
        st.lists(
            st.sampled_from(
                [
                    '"',
                    "'",
                    "AND",
                    "OR",
                    "NOT",
                    "NEAR(",
                    ")",
                    "*",
                    "^",
                    ":",
                    "heading:",
                    "-",
                    "+",
                    "{",
                    "%",
                    "東京",
                ]
            ),
            max_size=12,
        ).map(" ".join),
    )
)
def test_no_query_text_is_an_error(world: World, query: str) -> None:
    if not world.texts:
        world.put("a.md", 'AND OR NOT "quoted" heading: near')
    answer = world.search(query)
    assert answer["query"] == query
    assert len(answer["hits"]) <= 1


def test_a_client_with_labels_gets_rank_scores_only(world: World) -> None:
    world.add_root("work", "team")
    world.put("a.md", "alpha", root="work")
    (hit,) = world.search("alpha", client=Client("helper", frozenset({"team"})))["hits"]
    assert hit["scores"] == {"dense": None, "lexical": None}
    assert hit["score"] == 1.0
    assert hit["labels"] == ["team"]
