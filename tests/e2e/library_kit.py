"""The documentation tree, indexed by a daemon that runs, and ways to ask about it.

What must stay true: what is expected comes from the files alone; only `ragd` asks the daemon.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docs_kit
from ragd_kit import Ragd, wait_for
from truth_kit import assert_catalog_is_true, truth_of

FOUND_S = 60.0
"""A change is found within this time, also on a busy machine."""
K = 5


@dataclass
class Library:
    """The tree, indexed by a daemon that runs."""

    ragd: Ragd
    rels: list[str]
    """Every file that was unpacked."""
    ready_s: float = 0.0
    indexed_s: float = 0.0
    answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        return [rel for rel in self.rels if docs_kit.reason_to_ignore(rel) is None]

    def path(self, rel: str) -> Path:
        return self.ragd.docs / rel

    def embedded(self) -> int:
        """Texts that were embedded since this daemon started."""
        count = self.ragd.status()["embedded"]["texts"]
        assert isinstance(count, int)
        return count

    def rels_of(self, query: str, mode: str = "hybrid", k: int = K) -> list[str]:
        return [hit["rel"] for hit in self.ragd.search(query, mode, k)]

    def is_found(self, word: str) -> bool:
        """Whether a text with exactly this word is found by its words."""
        return any(word in hit["text"] for hit in self.ragd.search(word, "lexical"))

    def start(self) -> None:
        self.ragd.start()
        self.ragd.wait_idle()
        wait_for("the model is loaded", lambda: self.ragd.status()["model_state"] == "ready", 120)

    def must_hold_what_the_files_say(self) -> Counter[str]:
        """The catalog against `cut` of every file. Returns the number of chunks by the ending of the name."""
        truth = truth_of(
            self.ragd.config_file,
            is_indexed=lambda path: docs_kit.reason_to_ignore(os.fsdecode(path)) is None,
        )
        assert_catalog_is_true(self.ragd.config_file, self.ragd.state, truth)
        kinds: Counter[str] = Counter()
        for path, chunks in truth.files.items():
            kinds[Path(os.fsdecode(path)).suffix or "none"] += chunks
        return kinds

    def why(self, path: Path) -> tuple[str, str | None]:
        """State and reason."""
        answer = self.ragd.ask("GET", "/v1/why", path=str(path))
        return answer["state"], answer["reason"]

    def only_hit(self, word: str) -> dict[str, Any]:
        """The one hit with this word."""
        [hit] = [hit for hit in self.ragd.search(word, "lexical") if word in hit["text"]]
        return hit


def seconds_until(probe: Callable[[], bool]) -> float:
    """How long it took until `probe` was true; AssertionError after FOUND_S."""
    began = time.monotonic()
    wait_for("the change is found", probe, FOUND_S, 0.1)
    return time.monotonic() - began
