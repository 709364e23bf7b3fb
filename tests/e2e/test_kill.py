"""kill -9 at any moment: nothing lost, nothing doubled, at most one batch embedded again, and never two Chroma
processes on one folder.

The real daemon with the hash embedder indexes while files are written, edited, renamed and deleted; the daemon
alone, its Chroma process alone, or both are killed at random moments and at the moment Chroma writes its index
files. In between and in the end the store must hold exactly what the files say.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from garden_kit import Garden
from process_kit import ChromaWatch, Held, wait_for
from ragd_kit import Ragd
from site_kit import Site, embedded_twice
from truth_kit import assert_store_is_true, held_by_catalog, truth_of

from ragd.store.chroma import health

pytestmark = [pytest.mark.process, pytest.mark.chroma]

MOST_TEXTS_OF_A_BATCH = 256
BATCH_SECONDS = 0.1
SMALL_CHUNKS = {"target_tokens": 40, "max_tokens": 60}
VICTIMS = ("daemon", "child", "both")
INDEX_FILES = ("index_metadata.pickle", "data_level0.bin")


@dataclass
class Torturer:
    """Kills a daemon and keeps count."""

    ragd: Ragd
    garden: Garden
    site: Site
    random: random.Random
    kills: Counter[str] = field(default_factory=Counter)
    torn: int = 0
    """Kills that left index files which show damage before anybody has opened them."""
    aside: set[str] = field(default_factory=set)
    """Folders that were set aside; only the newest two are kept."""

    def attack(self, number: int) -> None:
        """Kill number `number`: who dies changes from kill to kill; of eight, three are aimed."""
        victim = VICTIMS[number % 3]
        if number % 4 == 3:
            self._kill_while_writing("child" if victim == "daemon" else victim, INDEX_FILES[number // 4 % 2])
        elif number % 8 == 5:
            self._kill_while_embedding("daemon" if victim == "child" else victim)
        else:
            self._kill_at_random(victim)
        self.look_for_folders_set_aside()
        if self.random.random() < 0.3:
            self.garden.churn(3)  # nobody is there to see it, or somebody who is just starting

    def look_for_folders_set_aside(self) -> None:
        self.aside |= {path.name for path in self.ragd.state.glob("chroma.damaged-*")}

    def live(self) -> None:
        """There is a daemon; it may still be starting."""
        if not self.ragd.lives or not self.ragd.daemon.is_running:
            self.ragd.start(ready=False)

    def _kill_at_random(self, victim: str) -> None:
        """Between the first moment of a life and the middle of its work."""
        self.live()
        if victim == "child" or self.random.random() < 0.7:
            self.ragd.wait_ready()
        self.garden.churn(8)
        if victim == "child":
            wait_for("Chroma runs", self.ragd.chroma_pids)
        until = time.monotonic() + self.random.uniform(0.0, 1.5)
        while time.monotonic() < until:
            self.garden.edit(1)
            time.sleep(self.random.uniform(0.0, 0.2))
        with self.ragd.held_chroma() as children:
            self._kill(victim, children, "at random")

    def _kill_while_writing(self, victim: str, name: str) -> None:
        """At the moment one of Chroma's index files changes."""
        self.live()
        self.ragd.wait_ready()
        before = self._seen(name)
        self._bulk()
        give_up_at = time.monotonic() + 120
        while True:
            wait_for("Chroma runs", self.ragd.chroma_pids)
            with self.ragd.held_chroma() as children:
                if self._is_written(name, before, children, give_up_at):
                    self._kill(victim, children, f"while {name} was written")
                    return

    def _is_written(self, name: str, before: object, children: list[Held], give_up_at: float) -> bool:
        """True at the moment the file changes; False when Chroma ended meanwhile."""
        look_at = time.monotonic() + 2
        while self._seen(name) == before:
            if time.monotonic() >= look_at:
                assert time.monotonic() < give_up_at, f"Chroma did not write {name}"
                if not children or children[0].has_ended:
                    return False
                status = self.ragd.status()
                if status["state"] != "starting" and status["pending"] == 0:
                    self._bulk()  # those rows were not enough
                look_at = time.monotonic() + 2
        return True

    def _kill_while_embedding(self, victim: str) -> None:
        """In the middle of a batch, which is then lost."""
        self.live()
        self.ragd.wait_ready()
        self.garden.plant(8)
        before = self.site.size()
        wait_for("something is embedded", lambda: self.site.size() > before, poll_s=0.002)
        with self.ragd.held_chroma() as children:
            self._kill(victim, children, "while a batch was embedded")

    def _kill(self, victim: str, children: list[Held], word: str) -> None:
        daemon = self.ragd.daemon.process
        if victim != "daemon":
            for child in children:
                child.kill()
        if victim != "child":
            daemon.kill()
        self.kills[f"{victim} {word}"] += 1
        if victim != "child":
            daemon.wait()
        if victim != "daemon" and children:
            wait_for("Chroma has ended", lambda: all(child.has_ended for child in children))
            self.torn += bool(health.folder_problems(self.ragd.chroma))  # nobody has loaded Chroma again so fast

    def _bulk(self) -> None:
        """Enough for Chroma's next write, which comes after 1,000 rows."""
        self.garden.plant(16)
        self.garden.rename_folder()
        self.garden.rename(24)
        self.garden.delete(8)

    def _seen(self, name: str) -> list[tuple[str, int, int]]:
        found = []
        for path in self.ragd.segment_files([name]):
            try:
                stat = path.stat()
            except FileNotFoundError:
                continue
            found.append((str(path), stat.st_size, stat.st_mtime_ns))
        return found


def _must_be_true(ragd: Ragd, garden: Garden) -> int:
    """Stop when all is in, and compare files, catalog and Chroma. Returns how many chunks there are."""
    if not ragd.daemon.is_running:
        ragd.start()
    ragd.wait_ready()
    status = ragd.wait_idle()
    assert status["roots"][0]["state"] == "ok", status["problems"]
    for rel, mark in garden.random.sample(sorted(garden.marks.items()), 3):
        hits = ragd.search(mark, "lexical")
        assert {hit["rel"] for hit in hits} == {rel}
        assert any(mark in hit["text"] for hit in hits)
        assert rel in [hit["rel"] for hit in ragd.search(hits[0]["text"], "dense")]
    for mark in garden.random.sample(garden.gone, min(3, len(garden.gone))):
        assert ragd.search(mark, "lexical") == []
    assert ragd.daemon.stop() == 0
    assert ragd.processes() == []
    return assert_store_is_true(ragd.config_file, ragd.state, ragd.base / "copy")


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("kills", "seed"), [(10, 11), (50, 7)], ids=["10", "50"])
def test_law_kill_at_any_moment(ragd: Ragd, tmp_path: Path, kills: int, seed: int) -> None:
    site = Site(tmp_path / "site", BATCH_SECONDS)
    ragd.env["PYTHONPATH"] = str(site.folder)
    ragd.configure(chunking=SMALL_CHUNKS)
    chance = random.Random(seed)
    garden = Garden(ragd.docs, chance)
    garden.plant(120)
    torturer = Torturer(ragd, garden, site, chance)
    began, chunks = time.monotonic(), 0
    with ChromaWatch(ragd.chroma) as watch:
        for number in range(kills):
            torturer.attack(number)
            # the first kills are in the middle of the first indexing
            if number in (2, kills - 1) or number % 12 == 11:
                chunks = _must_be_true(ragd, garden)
                torturer.look_for_folders_set_aside()
    twice = embedded_twice(site.batches())
    said = "\n".join(life.said() for life in ragd.lives)
    print(
        f"\n{kills} kills in {time.monotonic() - began:.0f} s: {dict(torturer.kills)}; "
        f"{torturer.torn} left torn files, {len(torturer.aside)} were set aside; "
        f"{len(ragd.lives)} lives, {len(watch.seen)} Chroma processes, at most {watch.most_at_once} at once "
        f"({watch.looks} looks); {site.texts()} texts embedded, {twice.texts} of them again, "
        f"at most {twice.most_after_one_kill} after one kill; {chunks} chunks in the end"
    )
    assert sum(torturer.kills.values()) == kills
    assert watch.most_at_once == 1, watch.moments
    assert twice.texts > 0, "no kill hit a batch: this proves nothing"
    assert twice.wrong == []
    assert twice.most_after_one_kill <= MOST_TEXTS_OF_A_BATCH
    assert "Traceback" not in said, said[-5000:]


@pytest.mark.timeout(300)
def test_fault_f4_e8_a_kill_half_way_keeps_what_was_done_and_a_restart_embeds_nothing(
    ragd: Ragd, tmp_path: Path
) -> None:
    site = Site(tmp_path / "site", BATCH_SECONDS)
    ragd.env["PYTHONPATH"] = str(site.folder)
    ragd.configure(chunking=SMALL_CHUNKS)
    Garden(ragd.docs, random.Random(2)).plant(100)
    chunks = len(truth_of(ragd.config_file).chunks)
    ragd.start()
    wait_for("half of it is in", lambda: ragd.status()["chunks"] >= chunks // 2, poll_s=0.05)
    with ragd.held_chroma() as children:
        for child in children:
            child.kill()
        ragd.daemon.kill()
    assert 0.4 * chunks <= len(held_by_catalog(ragd.state).ids) < chunks, "written as it goes"

    ragd.start()
    assert ragd.status()["chunks"] >= 0.4 * chunks, "it answers with what it had"
    assert ragd.wait_idle()["chunks"] == chunks
    assert ragd.daemon.stop() == 0
    twice = embedded_twice(site.batches())
    assert twice.wrong == []
    assert twice.most_after_one_kill <= MOST_TEXTS_OF_A_BATCH

    texts = site.texts()
    ragd.start()
    assert ragd.wait_idle()["chunks"] == chunks
    assert ragd.daemon.stop() == 0
    assert site.texts() == texts
    assert assert_store_is_true(ragd.config_file, ragd.state, ragd.base / "copy") == chunks
