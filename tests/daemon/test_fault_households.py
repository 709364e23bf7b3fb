"""Faults of indexing that users of other tools met, against a whole engine: large folders, little memory, kills."""

from __future__ import annotations

import os
import random
import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from engine_kit import FussyEmbedder, Household

from ragd.daemon.backend import OWNER
from ragd.daemon.model import HeldModel
from ragd.daemon.parsing.limits import ParseLimits
from ragd.daemon.parsing.pool import ParsePool
from ragd.store.errors import FilterError
from ragd.store.types import Vectors

PARTS = 100


class Killed(BaseException):
    """The process ends here."""


class SmallMemory(FussyEmbedder):
    """Has no room for more than `most` texts or `most_padded` tokens, padding included; dies after `dies_after`
    texts."""

    def __init__(self, most: int = 64, most_padded: int = 10**9, dies_after: int = 10**9) -> None:
        super().__init__()
        self.most, self.most_padded, self.dies_after = most, most_padded, dies_after
        self.refusals = 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        longest = max(self.counter.count_many(texts))
        if len(texts) > self.most or longest * len(texts) > self.most_padded:
            self.refusals += 1
            raise MemoryError
        if len(self.embedded) + len(texts) > self.dies_after:
            raise Killed
        return super().embed_documents(texts)


def fill(home: Household, files: int) -> int:
    """So many files of 100 chunks each, one of them with texts that are as long as the model takes."""
    chance = random.Random(8)
    for number in range(files):
        sizes = [30 if number else 220] * PARTS
        parts = (
            f"# Part {n}\n\nzq{number}x{n} " + "word " * (size + chance.randrange(8)) for n, size in enumerate(sizes)
        )
        home.write(f"d{number % 7}/n{number}.md", "\n\n".join(parts))
    return files * PARTS


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("files", "memory"), [(200, SmallMemory(64)), (30, SmallMemory(10**9, 1_000))], ids=["texts", "padded size"]
)
def test_fault_e8_many_chunks_go_in_with_little_memory(tmp_path: Path, files: int, memory: SmallMemory) -> None:
    home = Household(tmp_path, embedder=memory, extra_config="[embedding]\nbatch_tokens = 8192\n")
    count = fill(home, files)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    home.open()
    try:
        home.walk()
        assert len(home.indexed_ids()) == count == len(home.collections[home.running.store.live.collection].rows)
        assert len(memory.embedded) == len(set(memory.embedded)) == count
        assert memory.refusals > 0
        assert home.running.status(OWNER)["failed"] == 0
        assert home.search("zq29x99")[0]["rel"] == "d1/n29.md"
    finally:
        home.close()
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / (1 if sys.platform == "darwin" else 1024)
    assert grown_mb < 400


@pytest.mark.timeout(300)
def test_fault_e8_f4_what_was_in_before_a_kill_is_found_and_never_embedded_again(tmp_path: Path) -> None:
    home = Household(tmp_path, embedder=SmallMemory(dies_after=3_000))
    count = fill(home, 60)
    home.open()
    with suppress(Killed):
        home.walk()
    done = len(home.embedder.embedded)
    assert done > 0.49 * count
    home.running._lock.release()  # what a kill leaves
    home.embedder = SmallMemory()
    home.open()
    try:
        assert len(home.indexed_ids()) >= 0.4 * count
        answered = home.running.search(OWNER, {"query": "word part", "mode": "dense", "k": 50})
        assert len(answered["hits"]) == 50
        home.walk()
        assert len(home.indexed_ids()) == count
        assert len(home.embedder.embedded) <= count - done + 256, "one batch at most is embedded again"
    finally:
        home.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Household]:
    household = Household(tmp_path)
    household.open()
    yield household
    household.close()


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.csv", "a.py", "a.html"])
def test_fault_f1_no_format_leaves_a_tail(home: Household, name: str) -> None:
    """Shorter, empty, something else under the same name, gone, and back."""
    part = {
        "a.md": "## S{n}\n\nwords zq{n}s here\n\n",
        "a.csv": "{n},zq{n}s\n",
        "a.py": "def f{n}():\n    return 'zq{n}s'\n\n\n",
        "a.html": "<h2>S{n}</h2><p>words zq{n}s</p>\n",
        "a.txt": "Chapter {n}\n\nwords zq{n}s\n\n\n",
    }[name]
    parts = [part.format(n=n) for n in range(30)]
    for text in (
        "".join(parts),
        "".join(parts[:12]),
        parts[3],
        "",
        "".join(parts[10:]),
        "\x00\x01\x02\x03" * 99,
        parts[1],
    ):
        home.write(name, text)
        home.walk()
        home.assert_true()
        for n in (0, 3, 11, 29):
            assert home.rels(f"zq{n}s") == ({name} if f"zq{n}s" in text else set())
    (home.notes / name).unlink()
    home.walk()
    assert home.indexed_ids() == set()


def test_fault_f1_another_recipe_leaves_no_id_of_the_old_one(home: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write("a.md", "".join(f"## S{n}\n\n{'words of it ' * 40}zq{n}\n\n" for n in range(9)))
    home.walk()
    home.close()
    home.extra_config = "[chunking]\ntarget_tokens = 60\nmax_tokens = 80"
    home.open()
    home.walk()
    home.assert_true()
    home.close()
    from ragd.chunkers import registry

    monkeypatch.setitem(registry.STRATEGY_VERSIONS, "structure", 999)
    home.embedder.embedded.clear()
    home.open()
    home.walk()
    home.assert_true()
    assert home.embedder.embedded == [], "the same chunks cost nothing, whatever the version is called"


def test_fault_f6_files_that_cannot_be_read_stop_no_other(home: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    """One may not be read, one goes between the walk and its turn, one is a pipe, one a link to nowhere, one grew."""
    for number in range(50):
        home.write(f"n{number}.md", f"good {number}\n")
    home.write("shut.md", "zqshut\n").chmod(0)
    going = home.write("going.md", "zqgoing\n")
    os.mkfifo(home.notes / "pipe.md")
    (home.notes / "nowhere.md").symlink_to("nothing")
    (home.notes / "bin.md").write_bytes(bytes(range(256)) * 20)
    from ragd.daemon.files import read

    opened = os.open

    def shut(path: bytes, *args: object, **more: object) -> int:
        if b"shut.md" in os.fsencode(path):  # also for root, who may read everything
            raise PermissionError(13, "Permission denied", path)
        return opened(path, *args, **more)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(read.os, "open", shut)
    home.running.walk_all()
    home.clock.now += 5
    assert home.running.worker.tick().did == "walked"
    going.unlink()
    home.settle()
    assert len(home.indexed_ids()) == 50
    listed = {Path(entry["path"]).name: entry["reason"] for entry in home.running.failures(OWNER)["failures"]}
    assert listed["shut.md"] == "unreadable"
    assert "going.md" not in listed
    assert home.running.why(OWNER, str(home.notes / "bin.md"))["reason"] == "binary"
    assert "committed" not in home.walk(), "what failed rests"


@pytest.mark.process
def test_fault_f6_a_parser_that_hangs_or_dies_costs_its_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With real parsing children: 50 files go in, 5 have their reason, and what is unchanged is not tried again."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    limits = ParseLimits(parse_seconds=1.0, parse_memory_mb=256, niceness=0)
    pools: list[ParsePool] = []

    def make_pool(held: HeldModel) -> ParsePool:
        pools.append(ParsePool(limits, held.counter_spec, held.budget, cutter="parse_stub:cut_or_worse"))
        return pools[-1]

    home = Household(tmp_path, parser=make_pool)
    for number in range(50):
        home.write(f"n{number:02}.md", f"good {number}\n")
    bad = {"hang": "timeout", "exit": "crashed", "segv": "crashed", "raise {": "parse_error", "memory 400": "memory"}
    for number, text in enumerate(bad):
        home.write(f"n{number * 9:02}-bad.md", f"{text} ")
    home.open()
    try:
        ticket = home.running.sync(OWNER, [])
        assert (ticket["files"]["indexed"], ticket["files"]["failed"]) == (50, 5)
        assert len(home.indexed_ids()) == 50
        listed = {Path(entry["path"]).name: entry["reason"] for entry in home.running.failures(OWNER)["failures"]}
        assert listed == {f"n{number * 9:02}-bad.md": reason for number, reason in enumerate(bad.values())}
        assert pools[0].child_starts == 5
        again = home.running.sync(OWNER, [])
        assert (again["files"]["indexed"], again["files"]["seen"]) == (0, 55)
        assert pools[0].child_starts == 5, "nothing was tried again"
        home.write("n00-bad.md", "mended zqmended\n")
        assert home.running.sync(OWNER, [])["files"]["indexed"] == 1
        assert home.rels("zqmended") == {"n00-bad.md"}
    finally:
        home.close()


def test_fault_f9_what_is_done_is_what_the_index_holds(tmp_path: Path) -> None:
    """Killed after any text of ten: a file counts as done only with all of its chunks."""
    text = "\n\n".join(f"# Part {n}\n\n" + f"text zqp{n}q " * 20 for n in range(10))
    for after in range(0, 11, 2):
        home = Household(tmp_path / str(after), embedder=SmallMemory(1, dies_after=after))
        home.write("book.md", text)
        home.open()
        with suppress(Killed):
            home.walk()
        home.running._lock.release()
        home.embedder = FussyEmbedder()
        home.open()
        try:
            held = home.indexed_ids()
            assert len(held) in (0, 10)
            state = home.running.why(OWNER, str(home.notes / "book.md"))["state"]
            assert state == ("indexed" if held else "pending")
            home.walk()
            home.assert_true()
            assert len(home.indexed_ids()) == 10
            assert len(home.embedder.embedded) == 10 - min(after, 10)
        finally:
            home.close()


@pytest.mark.parametrize("parts", [255, 256, 257, 769])
def test_fault_f14_a_file_at_the_edges_of_batches_is_written_once(tmp_path: Path, parts: int) -> None:
    home = Household(tmp_path)
    home.write("big.md", "\n\n".join(f"# Part {n}\n\nwords zq{n}x" for n in range(parts)))
    home.open()
    try:
        home.walk()
        home.assert_true()
        assert len(home.indexed_ids()) == parts == len(home.embedder.embedded)
        for _ in range(2):
            answer = home.running.sync(OWNER, [])
            assert answer["chunks"] == {"added": 0, "kept": 0, "removed": 0, "total": parts}
            assert answer["files"]["unchanged"] == 1
        assert len(home.embedder.embedded) == parts
        os.utime(home.notes / "big.md")
        answer = home.running.sync(OWNER, [])
        assert (answer["chunks"]["added"], answer["chunks"]["removed"], len(home.embedder.embedded)) == (0, 0, parts)
    finally:
        home.close()


FRONTS = {
    "base": "author:\ntags: []\ntags2: [a, b]\nowner: {name: x}\ndate: 2024-05-01\nn: .nan",
    "list": "tags: [alpha, 'two words', Größe, \"it's\", '50%', 'a\"b', 7, true]\nauthor:",
    "text": "tags: alpha, two words",
    "none": "tags:",
    "map": "tags: {a: b}",
    "huge": "tags: [alpha]\nn: " + "9" * 400,
}


@pytest.mark.parametrize("mode", ["lexical", "dense", "hybrid"])
def test_fault_d4_front_matter_of_any_shape_is_indexed_and_tags_are_found(home: Household, mode: str) -> None:
    for name, front in FRONTS.items():
        home.write(f"{name}.md", f"---\n{front}\n---\n\n# H\n\nbody zqbody of {name}\n")
    home.write("plain.md", "body zqbody without any\n")
    home.walk()
    home.assert_true()
    assert home.running.status(OWNER)["failed"] == 0
    assert home.rels("zqbody") == {"plain.md", *(f"{name}.md" for name in FRONTS)}

    def tagged(*tags: str) -> set[str]:
        return {hit["rel"] for hit in home.search("zqbody", mode, tag=tags)}

    assert tagged("alpha") == {"list.md", "text.md", "huge.md"}
    assert tagged("two words") == {"list.md", "text.md"}
    for tag in ("Größe", "it's", "50%", 'a"b', "7", "true"):
        assert tagged(tag) == {"list.md"}
    assert tagged("alpha", "nothing") == {"list.md", "text.md", "huge.md"}
    assert tagged("a") == tagged("%") == tagged("") == set()
    (hit,) = [hit for hit in home.search("zqbody") if hit["rel"] == "list.md"]
    assert hit["tags"] == ["alpha", "two words", "Größe", "it's", "50%", 'a"b', "7", "true"]


def test_fault_d5_a_tag_that_was_taken_away_is_found_no_more(home: Household) -> None:
    for front, old, new in (
        ("tags: [old]\ntitle: Old", "old", "x"),
        ("tags: [new]", "new", "old"),
        ("a: 1", "", "new"),
    ):
        home.write("a.md", f"---\n{front}\n---\n\n## Section of {old or 'nothing'}\n\nbody zqbody\n")
        home.walk()
        home.assert_true()
        assert not home.search("zqbody", "dense", tag=[new])
        assert bool(home.search("zqbody", "dense", tag=[old])) == bool(old)
        (row,) = home.collections[home.running.store.live.collection].rows.values()
        assert ("Old" in repr(row)) == (old == "old")


def test_fault_g3_every_shape_of_filter_is_answered_or_named(home: Household) -> None:
    for name in ("a.md", "b.txt", "deep/50% o'clock.md"):
        home.write(name, "words zqword here\n")
    home.walk()

    def found(**filters: object) -> set[str]:
        return {hit["rel"] for mode in ("lexical", "dense", "hybrid") for hit in home.search("zqword", mode, **filters)}

    every = found()
    assert found(type=None) == every
    assert found(type=["markdown"]) == found(type="markdown") == found(type=["markdown"], path=["*.md"])
    assert found(path="*.md", type="text") == set()
    for key in ("root", "path", "type", "kind", "language", "label", "tag"):
        assert found(**{key: []}) == set(), key
        assert found(**{key: ['it\'s 100% "no"; DROP TABLE chunk; --']}) == set(), key
        assert found(**{key: ["*", "%", "_"]}) == (every if key == "path" else set()), key
    for glob in ("50% o'clock.md", "deep/*", "50%*", "/deep/50% o'clock.md"):
        assert home.search("zqword", path=[glob])[0]["rel"] == "deep/50% o'clock.md", glob
    for key in ("nope", "filters", "$and", "where", "Type"):
        with pytest.raises(FilterError) as caught:
            found(**{key: {}})
        assert caught.value.field == key


def test_fault_g1_five_hits_are_five_passages(home: Household) -> None:
    """The best sentence stands in one chunk and in the overlap of the next; a copy of a file; two good places."""
    best = "The zebra quagga okapi answer stands in this one sentence here."
    for place in range(4, 60):
        lines = [f"Sentence number {n} speaks about topic{n} and nothing else of note today." for n in range(60)]
        lines[place] = best
        home.write("lines.md", "\n".join(lines))
        chunks = home.running.preview(OWNER, {"path": str(home.notes / "lines.md")})["chunks"]
        if any(best in chunk["overlap"] for chunk in chunks):
            break
    else:
        raise AssertionError("no place of the sentence is in an overlap")
    filler = "filler words go here and there. " * 60
    home.write("two.md", f"# A\n\nzebra quagga one. {filler}\n\n# B\n\n{filler}\n\n# C\n\nzebra okapi two. {filler}\n")
    home.write("copy/two.md", (home.notes / "two.md").read_text())
    for number in range(4):
        home.write(f"weak{number}.md", f"zebra only, mention {number} of w{number}\n")
    home.walk()
    for mode in ("lexical", "dense", "hybrid"):
        hits = home.running.search(OWNER, {"query": "zebra quagga okapi answer", "mode": mode, "k": 5})["hits"]
        assert len(hits) == 5
        assert len({hit["text"] for hit in hits}) == 5
        for one in hits:
            for other in hits:
                if one is not other and one["path"] == other["path"]:
                    assert one["end_line"] < other["start_line"] or other["end_line"] < one["start_line"]
        assert all(0 <= hit["score"] <= 1 for hit in hits)
    texts = [hit["text"] for hit in home.search("zebra quagga okapi answer")]
    assert sum("zebra quagga one" in text for text in texts) == sum("zebra okapi two" in text for text in texts) == 1
    (twice,) = [hit for hit in home.search("zebra quagga okapi answer") if "zebra quagga one" in hit["text"]]
    assert {twice["rel"], *(place["rel"] for place in twice["also_at"])} == {"two.md", "copy/two.md"}
