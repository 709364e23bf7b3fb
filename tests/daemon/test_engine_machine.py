"""A person edits, renames, removes and moves files at random while the daemon is told or not, is killed between any
two durable steps, and its model refuses texts: after the next walk the index equals the disk."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from engine_kit import Household
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

NAMES = st.sampled_from(["a.md", "b.md", "d/c.md", "d/e/f.txt", "d-g.md", "t.csv", "code.py"])
BODIES = st.lists(st.sampled_from([f"## Part {n}\n\nwords of part {n}\n\n" for n in range(6)]), max_size=5)


class Killed(BaseException):
    """The process ends here."""


class EngineMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.home = Household(self.folder)
        self.steps_left: int | None = None
        self.home.open(self._step)

    def _step(self, _name: str) -> None:
        if self.steps_left is not None:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise Killed

    def _restart(self) -> None:
        """What a kill leaves: files on disk, the lock free, nothing closed."""
        engine = self.home.running
        engine._lock.release()
        self.steps_left = None
        self.home.engine = None
        self.home.open(self._step)

    @rule(name=NAMES, body=BODIES, told=st.booleans())
    def save(self, name: str, body: list[str], told: bool) -> None:
        self.home.write(name, "".join(body))
        if told:
            self.home.hint(name)

    @rule(name=NAMES, told=st.booleans())
    def remove(self, name: str, told: bool) -> None:
        path = self.home.notes / name
        if path.exists():
            path.unlink()
            if told:
                self.home.hint(name, deleted=True)

    @rule(old=NAMES, new=NAMES, told=st.booleans())
    def rename(self, old: str, new: str, told: bool) -> None:
        source, target = self.home.notes / old, self.home.notes / new
        if source.exists() and source != target:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(source, target)
            if told:
                self.home.hint(old, deleted=True)
                self.home.hint(new)

    @precondition(lambda self: (self.home.notes / "d").exists())
    @rule(told=st.booleans())
    def rename_folder(self, told: bool) -> None:
        target = self.home.notes / "z"
        if target.exists():
            shutil.rmtree(target)
        os.rename(self.home.notes / "d", target)
        if told:
            self.home.hint("d", deleted=True)
            self.home.hint("z")

    @rule(word=st.sampled_from(["part 1", "part 4", ""]))
    def refuse(self, word: str) -> None:
        self.home.embedder.refused = {word} if word else set()

    @rule(ticks=st.integers(1, 4))
    def work(self, ticks: int) -> None:
        self.home.clock.now += 1
        for _ in range(ticks):
            self.home.running.worker.tick()

    @rule(steps=st.integers(0, 12))
    def kill(self, steps: int) -> None:
        self.steps_left = steps
        with suppress(Killed):
            self.home.walk()
        self._restart()

    @rule()
    def walk_and_compare(self) -> None:
        self.home.embedder.refused = set()
        self.home.clock.now += 10_000  # every pause is over
        self.home.walk()
        self.home.walk()
        self.home.assert_true()

    def teardown(self) -> None:
        self.walk_and_compare()
        self.home.close()
        shutil.rmtree(self.folder)


def test_whatever_happens_the_index_ends_equal_to_the_disk() -> None:
    run_state_machine_as_test(
        EngineMachine,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize=True,
            database=None,
        ),
    )
