"""A walk with ignore rules and a plan against 50,000 catalog rows, beside a bare scandir + lstat loop.

    python benchmarks/walk_speed.py [FILES]

Prints the best of five of each and their ratio; exit code 1 when the walk takes more than 2 x bare + 0.5 s. Processor
time is compared (the tree is in the page cache, so on an idle machine it is the time that passes). The tree has 500
folders, two ignore files in a repository, and everything unchanged, as nearly every walk of a daemon is.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ragd.daemon.files.ignore import IgnoreRules
from ragd.daemon.files.roots import RootRules, arrange
from ragd.daemon.files.walk import Walk
from ragd.daemon.plan import Plan, PlanInput
from ragd.store.rows import PlanRow, stat_key

FOLDERS = 500


def make(top: Path, files: int) -> None:
    for folder in range(FOLDERS):
        place = top / f"d{folder:03}"
        place.mkdir()
        for number in range(files // FOLDERS):
            (place / f"note{number:03}.md").write_text("text")
    for name in (".git/objects", ".git/refs", ".git/info"):
        (top / name).mkdir(parents=True)
    (top / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (top / ".gitignore").write_text("*.log\nbuild/\n/out\nsecret?.txt\ndocs/**/draft*.md\n")
    (top / "d001" / ".gitignore").write_text("!keep.log\n*.bak\n")


def bare(top: bytes) -> int:
    count, waiting = 0, [top]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    os.lstat(entry.path)
                    count += 1
    return count


def rows_of(rules: IgnoreRules) -> list[PlanRow]:
    return [
        PlanRow(seen.path, *stat_key(seen.stat), 1, "indexed", "recipe", b"hash", 0, 0, None, "")
        for seen in Walk(rules)
    ]


def walk_and_plan(rules: IgnoreRules, rows: list[PlanRow]) -> int:
    walk = Walk(rules)
    plan = Plan(
        PlanInput(
            seen=walk,
            rows=rows,
            recipe_of=lambda _: "recipe",
            now_ns=time.time_ns(),
            max_bytes=1 << 24,
            covers=walk.covers,
            why_ignored=rules.explainer(),
            root_is_healthy=lambda: True,
            files_in_root=len(rows),
        )
    )
    actions = list(plan)
    assert not actions, actions[:3]
    return plan.unchanged


def best(work: Callable[[], object], times: int = 5) -> float:
    seconds = []
    for _ in range(times):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    return min(seconds)


def main() -> int:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with tempfile.TemporaryDirectory() as place:
        make(Path(place), files)
        top = os.fsencode(place)
        rules = IgnoreRules(arrange([RootRules("bench", top)])[0])
        rows = rows_of(rules)
        plain = best(lambda: bare(top))
        ours = best(lambda: walk_and_plan(rules, rows))
    print(f"bare scandir + lstat: {plain:.3f} s for {files} files")
    print(f"walk + rules + plan:  {ours:.3f} s for {len(rows)} rows, {ours / plain:.2f} x bare")
    return 0 if ours <= 2 * plain + 0.5 else 1


if __name__ == "__main__":
    raise SystemExit(main())
