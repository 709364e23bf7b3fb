"""A second sync when nothing changed: 50,000 small files against a bare loop of scandir and lstat.

Both are whole processes, timed from outside, in turn. Every file is stat'ed (counted by `files.seen`), none is read.

    python benchmarks/no_change.py [--files 50000] [--folders 500] [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_LOOP = """
import os, sys
count = 0
todo = [sys.argv[1]]
while todo:
    with os.scandir(todo.pop()) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            else:
                os.lstat(entry.path)
                count += 1
print(count)
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--files", type=int, default=50_000)
    options.add_argument("--folders", type=int, default=500)
    options.add_argument("--rounds", type=int, default=5)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _make_files(place / "files", asked.files, asked.folders)
        config = place / "config.toml"
        config.write_text(
            f'[store]\npath = "{place / "state"}"\n[embedding]\nmodel = "hash:16"\n'
            f'[[root]]\npath = "{place / "files"}"\n'
        )
        sync = [sys.executable, "-m", "ragd.daemon.cli.main", "--config", str(config), "--json", "sync"]
        first = json.loads(_run(sync)[1])
        print(f"first sync: {first['files']['indexed']} files indexed in {first['seconds']:.0f} s")
        time.sleep(3)  # files younger than two seconds are read once more
        _run(sync)
        loops, syncs = [], []
        for _ in range(asked.rounds):
            loops.append(_run([sys.executable, "-c", _LOOP, str(place / "files")])[0])
            seconds, printed = _run(sync)
            syncs.append(seconds)
            answer = json.loads(printed)
            if answer["files"]["seen"] != asked.files or answer["files"]["unchanged"] != asked.files:
                raise SystemExit(f"not every file was seen and unchanged: {answer['files']}")
            if answer["embedded"]["texts"]:
                raise SystemExit(f"{answer['embedded']['texts']} texts were embedded")
        loop_s, sync_s = statistics.median(loops), statistics.median(syncs)
        print(f"bare loop {loop_s:.2f} s, whole `ragd sync` {sync_s:.2f} s, inside it {answer['seconds']:.2f} s")
        print(f"target: at most 2 x loop + 1 s = {2 * loop_s + 1:.2f} s; over the loop: {sync_s - loop_s:.2f} s")


def _make_files(place: Path, files: int, folders: int) -> None:
    for number in range(folders):
        (place / f"d{number:04}").mkdir(parents=True)
    for number in range(files):
        path = place / f"d{number % folders:04}" / f"n{number:06}.md"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.write(descriptor, f"# Note {number}\n\nthe text of note {number}\n".encode())
        os.close(descriptor)


def _run(command: list[str]) -> tuple[float, str]:
    began = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - began, done.stdout


if __name__ == "__main__":
    main()
