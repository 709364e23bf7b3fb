"""The pipeline's finer points: what waits for the model, what is erased, what is given up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_kit import Household

from ragd.daemon.backend import OWNER
from ragd.store.rows import text_hash


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Household]:
    household = Household(tmp_path)
    household.open()
    yield household
    household.close()


def test_a_rename_does_not_wait_for_the_model(home: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write("a.md", "# Title\n\nalpha zqa\n")
    home.walk()
    monkeypatch.setattr(home.running.model, "embedder", lambda: None)  # it is still being loaded
    os.rename(home.notes / "a.md", home.notes / "b.md")
    home.hint("a.md", deleted=True)
    home.hint("b.md")
    home.settle()
    assert home.rels("zqa") == {"b.md"}


def test_what_needs_the_model_waits_for_it_and_stops_no_other(home: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write("a.md", "alpha zqa\n")
    home.write("gone.md", "gone zqgone\n")
    home.walk()
    with monkeypatch.context() as loading:
        loading.setattr(home.running.model, "embedder", lambda: None)
        home.write("new.md", "brand new zqnew\n")
        (home.notes / "gone.md").unlink()
        home.hint("new.md")
        home.hint("gone.md", deleted=True)
        home.clock.now += 5
        did = [home.running.worker.tick().did for _ in range(4)]
        assert did[-1] == "waiting"
        assert home.rels("zqgone") == set()
        assert home.rels("zqnew") == set()
    home.settle()
    assert home.rels("zqnew") == {"new.md"}
    home.assert_true()


def test_what_a_person_forgets_leaves_no_vector_behind(home: Household) -> None:
    path = home.write("secret.md", "the secret zqsecret\n")
    home.write("other.md", "alpha\n")
    home.walk()
    vectors = home.running.store.cache.of(home.embedder.identity.fingerprint, home.embedder.identity.dimension)
    key = text_hash("secret\nthe secret zqsecret")
    assert vectors.missing([key]) == set()
    path.unlink()
    assert home.running.forget(OWNER, {"path": str(path)})["forgotten"] == 1
    assert vectors.missing([key]) == {key}
    assert vectors.missing([text_hash("other\nalpha")]) == set()


def test_a_file_that_is_rewritten_all_the_time_is_told_of(home: Household, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home.write("busy.md", "zqbusy version 0\n")
    real_read, count = os.read, [0]

    def read_while_it_is_rewritten(descriptor: int, size: int) -> bytes:
        data = real_read(descriptor, size)
        if b"zqbusy" in data:
            count[0] += 1
            path.write_text(f"zqbusy version {count[0] % 10}\n")
            os.utime(path, ns=(count[0], count[0]))
        return data

    with monkeypatch.context() as patched:
        patched.setattr("ragd.daemon.files.read.os.read", read_while_it_is_rewritten)
        home.hint("busy.md")
        for _ in range(15):
            home.settle()
    listed = home.running.failures(OWNER)["failures"]
    assert [(entry["reason"], Path(entry["path"]).name) for entry in listed] == [("unstable", "busy.md")]
    home.clock.now += 10_000
    home.running.worker.retry_due(home.clock.ns())
    home.settle()
    home.assert_true()
