"""The examples of the pages, run for real: shell blocks, the transcript of the README, the state folder."""

from __future__ import annotations

import re
import shutil

import pytest
from garden_home import GardenHome
from pages_kit import Fence, fences, page, rows_of, section_of

RUN = [fence for fence in fences("sh") if not fence.marker.startswith("not run: ")]
[TRANSCRIPT] = [fence for fence in fences("console") if fence.marker == "transcript"]


def test_every_shell_block_is_run_or_says_why_not() -> None:
    assert all(fence.marker == "" for fence in RUN)
    assert len(RUN) >= 6


@pytest.mark.process
@pytest.mark.timeout(150)
@pytest.mark.parametrize("fence", RUN, ids=lambda fence: fence.place)
def test_a_shell_block_runs(fence: Fence, garden: GardenHome) -> None:
    if "curl " in fence.body and shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine")
    done = garden.run(fence.body)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert '"error"' not in done.stdout


@pytest.mark.process
@pytest.mark.timeout(150)
def test_the_state_folder_holds_what_the_page_says(garden: GardenHome) -> None:
    rows = rows_of(section_of(page("docs/operations.md"), "The state folder"))
    documented = {name.strip("`/") for name, *_ in rows}
    there = {re.sub(r"-(?:wal|shm)$", "", path.name) for path in garden.state.iterdir()}
    assert there <= documented
    assert documented - there <= {"facts.json"}  # the test embedder has no files to hash


@pytest.mark.model
@pytest.mark.process
@pytest.mark.timeout(240)
def test_the_transcript_is_what_is_printed(garden_with_model: GardenHome) -> None:
    printed = []
    for command in re.findall(r"^\$ (.+)$", TRANSCRIPT.body, re.M):
        done = garden_with_model.run(command)
        assert done.returncode == 0, done.stderr
        printed.append(f"$ {command}\n{done.stdout}")
    shown = "\n".join(printed).replace(str(garden_with_model.home), "/home/ines")
    assert _comparable(shown) == _comparable(TRANSCRIPT.body), shown


def _comparable(text: str) -> list[str]:
    """Lines without what differs from day to day and with the width of columns."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", re.sub(r"ragd \d+\.\d+\.\d+\S*:", "ragd VERSION:", text))
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]
