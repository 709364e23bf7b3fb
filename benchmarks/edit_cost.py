"""What one edit costs: ids that are new and gone, and rows written to and deleted from the vector index.

A Markdown file of 300 chunks, cut with the real model's tokenizer, in several shapes; 50 times one paragraph in it is
changed, then a line is inserted at its top; and a folder of 200 files is renamed. Vectors are made up.

    python benchmarks/edit_cost.py
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from corpus import text_files

from ragd.daemon.backend import OWNER
from ragd.daemon.config import parse_config
from ragd.daemon.engine import Engine
from ragd.daemon.model import HeldModel
from ragd.daemon.parsing.pool import InlinePool
from ragd.store.embedding.slot import open_model
from ragd.store.lock import StateLock
from ragd.store.memory_index import MemoryIndex
from ragd.store.types import VectorRow, Vectors

SHAPES = {"H1 and sections": 8, "few headings": 60, "no headings": 0}
"""Paragraphs a section."""


class CountingIndex(MemoryIndex):
    """Counts what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.upserted = self.deleted = 0

    def upsert(self, collection: str, rows: Sequence[VectorRow]) -> None:
        self.upserted += len(rows)
        super().upsert(collection, rows)

    def delete(self, collection: str, ids: Sequence[str]) -> None:
        self.deleted += len(ids)
        super().delete(collection, ids)


class MadeUp:
    """Stands in for the model; counts the texts."""

    def __init__(self, model: HeldModel) -> None:
        self.identity, self.counter = model.identity, model.counter
        self.texts = 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.texts += len(texts)
        vectors = np.random.default_rng(self.texts).standard_normal((len(texts), 384)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def main() -> None:
    random.seed(7)
    words = _words()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        engine, index, model = _engine(place)
        try:
            for shape, per_section in SHAPES.items():
                _edits(engine, index, place / "files" / "big.md", shape, _paragraphs(words, per_section))
            _rename(engine, model, place / "files", words)
        finally:
            engine.close()


def _engine(place: Path) -> tuple[Engine, CountingIndex, MadeUp]:
    (place / "files").mkdir()
    config = parse_config(f'[store]\npath = "{place / "state"}"\n[[root]]\npath = "{place / "files"}"\n', None)
    lock = StateLock(config.state_dir)
    lock.acquire()
    held, index = HeldModel(open_model("all-MiniLM-L6-v2")), CountingIndex()
    made_up = MadeUp(held)
    held.embedder = lambda: made_up  # type: ignore[method-assign,assignment,return-value]
    engine = Engine(
        config,
        lock,
        held,
        index_factory=lambda: index,
        index_path=None,
        parser=lambda model: InlinePool(model.counter_spec, model.budget),
    )
    return engine, index, made_up


def _words() -> list[str]:
    text = " ".join(path.read_text(errors="replace") for path in islice(text_files((".md", ".rst")), 60))
    return [word for word in text.split() if word.isalpha()]


def _paragraph(words: list[str]) -> str:
    start = random.randrange(len(words) - 200)
    chosen = words[start : start + random.randint(30, 110)]
    sentences = [" ".join(chosen[at : at + 14]).capitalize() + "." for at in range(0, len(chosen), 14)]
    return " ".join(sentences)


def _paragraphs(words: list[str], per_section: int) -> list[str]:
    """About 300 chunks of them; a heading stands in the same string as the paragraph below it."""
    found = []
    for number in range(560):
        heading = f"## Section {number}: {words[number]}\n\n" if per_section and number % per_section == 0 else ""
        found.append(heading + _paragraph(words))
    return found


def _edits(engine: Engine, index: CountingIndex, file: Path, shape: str, paragraphs: list[str]) -> None:
    title = "# The whole story\n\n" if shape != "no headings" else ""

    def save(parts: list[str], top: str = "") -> set[str]:
        file.write_text(top + title + "\n\n".join(parts) + "\n")
        engine.sync(OWNER, [])
        with engine.store.snapshot() as snapshot:
            return {str(row[0]) for row in snapshot.execute("SELECT id FROM chunk")}

    before = save(paragraphs)
    new, gone, written, deleted = [], [], [], []
    for _ in range(50):
        at = random.randrange(len(paragraphs) // 4, 3 * len(paragraphs) // 4)
        changed = list(paragraphs)
        changed[at] = changed[at].rsplit(" ", 3)[0] + " quite something else now."
        index.upserted = index.deleted = 0
        after = save(changed)
        new.append(len(after - before))
        gone.append(len(before - after))
        written.append(index.upserted)
        deleted.append(index.deleted)
        save(paragraphs)
    top = save(paragraphs, "A line that was not there.\n\n")
    print(
        f"{shape}: {len(before)} chunks; one paragraph changed, 50 times: new ids median"
        f" {statistics.median(new):g}, most {max(new)}; gone median {statistics.median(gone):g}, most {max(gone)};"
        f" rows written median {statistics.median(written):g}, most {max(written)}, deleted most {max(deleted)};"
        f" a line at the top: {len(top - before)} new ids (targets: 2 and 4, 2 and 4, nothing else, 3)"
    )
    file.unlink()
    engine.sync(OWNER, [])


def _rename(engine: Engine, model: MadeUp, files: Path, words: list[str]) -> None:
    (files / "old").mkdir()
    for number in range(200):
        parts = [_paragraph(words) for _ in range(5)]
        (files / "old" / f"n{number}.md").write_text(f"# Note {number}\n\n" + "\n\n".join(parts) + "\n")
    engine.sync(OWNER, [])
    model.texts = 0
    os.rename(files / "old", files / "new")
    answer = engine.sync(OWNER, [])
    print(
        f"a folder of 200 Markdown files renamed: {answer['files']['moved']} moved, {model.texts} texts embedded"
        " (target: 0)"
    )


if __name__ == "__main__":
    main()
