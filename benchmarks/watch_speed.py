"""How long it takes until 10,000 folders are watched, and until a save in one of them is hinted at.

python benchmarks/watch_speed.py [FOLDERS]
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from ragd.daemon.files.hints import Hint
from ragd.daemon.files.ignore import IgnoreRules
from ragd.daemon.files.roots import RootRules, arrange
from ragd.daemon.files.watcher import Watcher


def main() -> int:
    folders = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as place:
        top = Path(place)
        for number in range(folders // 100):
            for inner in range(99):
                (top / f"d{number}" / f"e{inner}").mkdir(parents=True)
        seen: dict[bytes, threading.Event] = {}

        def post(hint: Hint) -> None:
            if hint.path in seen:
                seen[hint.path].set()

        root = arrange([RootRules("bench", os.fsencode(top))])[0]
        watcher = Watcher([IgnoreRules(root)], post)
        began = time.perf_counter()
        watcher.start()
        seconds = time.perf_counter() - began
        print(f"{watcher.watch_count} folders watched after {seconds:.2f} s")
        delays = []
        for number in range(50):
            path = f"d{number % (folders // 100)}/e{number % 99}/note{number}.md"
            event = seen[path.encode()] = threading.Event()
            began = time.perf_counter()
            (top / path).write_text("text")
            if not event.wait(10):
                print(f"never seen: {path}")
                return 1
            delays.append(time.perf_counter() - began)
        began = time.perf_counter()
        watcher.health()
        print(f"health: {(time.perf_counter() - began) * 1e6:.0f} us")
        watcher.stop()
        delays.sort()
        print(f"save to hint: median {delays[25] * 1000:.1f} ms, p95 {delays[47] * 1000:.1f} ms")
        return 0 if seconds < 3 else 1


if __name__ == "__main__":
    raise SystemExit(main())
