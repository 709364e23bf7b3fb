"""What the store must hold, worked out from the files alone, and what it does hold.

What must stay true: nothing here asks the daemon. The expected chunks come from cutting the files with the settings
of the configuration; the catalog is read as a file; Chroma is read from a copy of its folder, so that looking
changes nothing.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ragd.chunkers.cut import cut
from ragd.chunkers.records import Chunk, ModelBudget, SourceFile
from ragd.daemon.config import load_config
from ragd.store.chroma.client import ChromaIndex
from ragd.store.embedding.slot import open_model


@dataclass
class Truth:
    """The chunks of every file of a root."""

    chunks: dict[str, Chunk]
    files: dict[bytes, int]
    """Path in the root -> number of its chunks."""
    vectors: dict[str, np.ndarray]
    """Only for the hash embedder."""


def truth_of(
    config_file: Path, *, vectors: bool = False, is_indexed: Callable[[bytes], bool] = lambda _: True
) -> Truth:
    """Cut every file of the first root whose path in it `is_indexed`. These must all be ones that are indexed."""
    config = load_config(config_file)
    model = open_model(config.embedding.model)
    budget = ModelBudget(model.identity.max_tokens, model.identity.document_prompt)
    root = config.roots[0]
    truth = Truth({}, {}, {})
    for path in sorted(filter(is_indexed, _files(os.fsencode(root.path)))):
        source = SourceFile(Path(os.fsdecode(os.path.join(os.fsencode(root.path), path))).read_bytes(), root.name, path)
        found = cut(source, config.cut_settings(root, path), model.counter, budget)
        assert found.skipped is None, (path, found.skipped)
        assert not truth.chunks.keys() & {chunk.id for chunk in found.chunks}
        truth.chunks |= {chunk.id: chunk for chunk in found.chunks}
        truth.files[path] = len(found.chunks)
    if vectors:
        ids = list(truth.chunks)
        embedded = model.load().embed_documents([truth.chunks[key].embedded_text for key in ids])
        truth.vectors = dict(zip(ids, embedded, strict=True))
    return truth


def _files(folder: bytes, under: bytes = b"") -> Iterator[bytes]:
    for entry in os.scandir(os.path.join(folder, under)):
        place = under + b"/" + entry.name if under else entry.name
        if entry.is_dir():
            yield from _files(folder, place)
        else:
            yield place


@dataclass
class Held:
    """What the catalog holds of the live generation."""

    ids: list[str]
    texts: dict[str, str]
    files: dict[bytes, int]
    pending: int
    lexical: int
    unwritten: int
    """Chunks whose row in the vector index is not certain."""
    collection: str
    failed: list[tuple[bytes, str, str]]


def held_by_catalog(state: Path) -> Held:
    """Read the catalog as it is committed now; the daemon may be running."""
    with closing(sqlite3.connect(f"file:{state / 'catalog.sqlite3'}?mode=ro", uri=True)) as link:
        link.execute("BEGIN")
        [(number, collection)] = link.execute("SELECT id, collection FROM generation WHERE state = 'live'").fetchall()
        chunks = link.execute("SELECT id, text, vector FROM chunk WHERE generation = ?", (number,)).fetchall()
        files = link.execute(
            "SELECT path, chunk_count, state, reason, detail FROM file WHERE generation = ?", (number,)
        ).fetchall()
        [(pending,)] = link.execute("SELECT count(*) FROM pending").fetchall()
        [(lexical,)] = link.execute(f"SELECT count(*) FROM lexical_{number}_docsize").fetchall()
    return Held(
        ids=[key for key, _, _ in chunks],
        texts={key: text for key, text, _ in chunks},
        files={bytes(path): count for path, count, state, _, _ in files if state == "indexed"},
        pending=pending,
        lexical=lexical,
        unwritten=sum(1 for _, _, vector in chunks if vector == 0),
        collection=collection,
        failed=[(bytes(path), reason, detail) for path, _, state, reason, detail in files if state == "failed"],
    )


def ids_in_chroma(state: Path, collection: str, copy: Path, vectors: dict[str, np.ndarray]) -> list[str]:
    """Open a copy of the Chroma folder, which nobody may have open; every vector is read. The vectors given are
    looked for and must be found as they are."""
    shutil.copytree(state / "chroma", copy)
    index = ChromaIndex(copy)
    try:
        assert [name for name in index.collections() if name.startswith("ragd-")] == [collection]
        assert index.check(collection, vectors=True) == []
        ids = list(index.ids(collection))
        for key, vector in vectors.items():
            nearest = index.query(collection, vector, 3)
            assert nearest, key
            assert abs(nearest[0][1] - 1.0) < 1e-4, (key, nearest)
        return ids
    finally:
        index.close()
        shutil.rmtree(copy)


def assert_catalog_is_true(config_file: Path, state: Path, truth: Truth | None = None) -> Held:
    """The catalog holds exactly the chunks of the files, each once, and nothing is pending."""
    expected = truth or truth_of(config_file)
    held = held_by_catalog(state)
    assert held.failed == []
    assert held.files == expected.files
    twice = [key for key, count in Counter(held.ids).items() if count > 1]
    assert twice == []
    lost, invented = expected.chunks.keys() - set(held.ids), set(held.ids) - expected.chunks.keys()
    assert not lost, f"{len(lost)} chunks are not in the catalog"
    assert not invented, f"{len(invented)} chunks in the catalog are of no file"
    assert held.texts == {key: chunk.text for key, chunk in expected.chunks.items()}
    assert held.lexical == len(held.ids)
    assert (held.pending, held.unwritten) == (0, 0)
    return held


def assert_store_is_true(config_file: Path, state: Path, scratch: Path, samples: int = 20) -> int:
    """Files, catalog and Chroma hold the same chunks. No daemon may be running. Returns how many chunks."""
    truth = truth_of(config_file, vectors=True)
    held = assert_catalog_is_true(config_file, state, truth)
    step = max(1, len(truth.vectors) // samples)
    chosen = {key: truth.vectors[key] for key in sorted(truth.vectors)[::step]}
    stored = ids_in_chroma(state, held.collection, scratch, chosen)
    assert len(stored) == len(set(stored))
    lost, extra = set(held.ids) - set(stored), set(stored) - set(held.ids)
    assert not lost, f"{len(lost)} chunks are not in Chroma"
    assert not extra, f"{len(extra)} rows of Chroma are of no chunk"
    return len(stored)
