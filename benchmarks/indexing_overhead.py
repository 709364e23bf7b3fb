"""What the pipeline costs beside the model: a whole sync against bare SentenceTransformer.encode.

Both embed the same strings with the same weights, in one process, in turn, several times; what counts is the ratio.

    python benchmarks/indexing_overhead.py [--megabytes 0.4] [--rounds 3]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from corpus import copy_files

from ragd.daemon.backend import OWNER
from ragd.daemon.config import parse_config
from ragd.daemon.engine import Engine


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--megabytes", type=float, default=0.4)
    options.add_argument("--rounds", type=int, default=3)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        files = copy_files(place / "files", int(asked.megabytes * 1e6))
        ratios = []
        for number in range(asked.rounds):
            sync_s, texts, tokens = _sync(place, place / f"state{number}")
            bare_s = _bare(texts)
            ratios.append(sync_s / bare_s)
            print(
                f"round {number + 1}: {files} files, {len(texts)} texts, {tokens} tokens:"
                f" sync {sync_s:.1f} s, bare encode {bare_s:.1f} s, ratio {ratios[-1]:.3f}"
            )
        print(f"median ratio {statistics.median(ratios):.3f} (target: at most 1.25)")


def _sync(place: Path, state: Path) -> tuple[float, list[str], int]:
    """Seconds of a sync with the model in memory, and the strings it embedded."""
    config = parse_config(f'[store]\npath = "{state}"\n[[root]]\npath = "{place / "files"}"\ngitignore = false\n', None)
    engine = Engine.open(config)
    engine.model.wait()
    engine.start()
    try:
        began = time.perf_counter()
        answer = engine.sync(OWNER, [])
        seconds = time.perf_counter() - began
        with engine.store.snapshot() as snapshot:
            rows = snapshot.execute("SELECT id FROM chunk")
            chunks = snapshot.chunks([str(row[0]) for row in rows])
        texts = list({chunk.embedded_text for chunk in chunks.values()})
        if answer["embedded"]["texts"] != len(texts):
            raise SystemExit(f"embedded {answer['embedded']['texts']} texts, found {len(texts)}")
        return seconds, texts, answer["embedded"]["tokens"]
    finally:
        engine.close()


def _bare(texts: list[str]) -> float:
    """One call that sorts the texts by length and batches them, as its users call it."""
    from sentence_transformers import SentenceTransformer

    from ragd.store.embedding.model_files import packaged_default

    model = SentenceTransformer(str(packaged_default()), device="cpu")
    model.encode(texts[:8], show_progress_bar=False)
    began = time.perf_counter()
    model.encode(texts, show_progress_bar=False)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
