"""What the store must hold, worked out from the files alone, and what it does hold.

What must stay true: nothing here asks the daemon. The expected chunks come from cutting the files with the settings
of the configuration; the catalog is read as a file; Chroma is read from a copy of its folder, so that looking
changes nothing.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ragd.chunkers.cut import cut
from ragd.chunkers.records import Chunk, ModelBudget, SourceFile
from ragd.daemon.config import load_config
from ragd.store.embedding.slot import open_model

MOST_UNFOUND = 0.002
"""Share of vectors that Chroma's approximate search may miss when asked for themselves."""


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


_READ_CHROMA = """
import sys
import chromadb, numpy
from chromadb.config import Settings

folder, target = sys.argv[1:]
client = chromadb.PersistentClient(path=folder, settings=Settings(anonymized_telemetry=False))
names = sorted(each.name for each in client.list_collections())
collection = client.get_collection(names[0], embedding_function=None)
ids, vectors, nearest = [], [], []
while page := collection.get(include=["embeddings"], limit=1000, offset=len(ids)):
    if not page["ids"]:
        break
    ids += page["ids"]
    vectors += list(page["embeddings"])
    found = collection.query(query_embeddings=page["embeddings"], n_results=1, include=["distances"])
    nearest += [row[0] for row in found["distances"]]
numpy.savez(target, names=names, ids=ids, vectors=numpy.array(vectors, dtype="f4"), nearest=nearest)
"""


@dataclass
class InChroma:
    """Everything in the one collection of a Chroma folder."""

    ids: list[str]
    vectors: np.ndarray
    nearest: np.ndarray
    """Distance of what a search with each vector finds first: 0 where its graph still leads there."""


def in_chroma(folder: Path, collection: str, copy: Path) -> InChroma:
    """Read a copy of a folder that no process has open, with chromadb itself."""
    shutil.copytree(folder, copy)
    target = copy.with_suffix(".npz")
    subprocess.run([sys.executable, "-c", _READ_CHROMA, str(copy), str(target)], check=True, timeout=120, cwd="/")
    with np.load(target) as read:
        assert list(read["names"]) == [collection]
        found = InChroma([str(key) for key in read["ids"]], read["vectors"], read["nearest"])
    shutil.rmtree(copy)
    target.unlink()
    return found


def assert_catalog_is_true(config_file: Path, state: Path, truth: Truth | None = None) -> Held:
    """The catalog holds exactly the chunks of the files, each once, and nothing is pending."""
    expected = truth or truth_of(config_file)
    held = held_by_catalog(state)
    assert held.failed == []
    differ = {
        path: (held.files.get(path), expected.files.get(path))
        for path in held.files.keys() | expected.files.keys()
        if held.files.get(path) != expected.files.get(path)
    }
    assert not differ, f"files and their chunks, held and expected: {dict(sorted(differ.items())[:20])}"
    twice = [key for key, count in Counter(held.ids).items() if count > 1]
    assert twice == []
    lost, invented = expected.chunks.keys() - set(held.ids), set(held.ids) - expected.chunks.keys()
    assert not lost, f"{len(lost)} chunks are not in the catalog"
    assert not invented, f"{len(invented)} chunks in the catalog are of no file"
    assert held.texts == {key: chunk.text for key, chunk in expected.chunks.items()}
    assert held.lexical == len(held.ids)
    assert (held.pending, held.unwritten) == (0, 0)
    return held


def assert_store_is_true(config_file: Path, state: Path, scratch: Path) -> int:
    """Files, catalog and Chroma hold the same chunks, and Chroma the right vector for each, where a search finds it.
    No daemon may be running. Returns how many chunks."""
    truth = truth_of(config_file, vectors=True)
    held = assert_catalog_is_true(config_file, state, truth)
    stored = in_chroma(state / "chroma", held.collection, scratch)
    assert len(stored.ids) == len(set(stored.ids))
    lost, extra = set(held.ids) - set(stored.ids), set(stored.ids) - set(held.ids)
    assert not lost, f"{len(lost)} chunks are not in Chroma"
    assert not extra, f"{len(extra)} rows of Chroma are of no chunk"
    expected = np.array([truth.vectors[key] for key in stored.ids])
    wrong = np.abs(expected - stored.vectors).max(axis=1) > 1e-5
    assert not wrong.any(), f"{wrong.sum()} vectors of {len(wrong)} in Chroma are not those of their chunks"
    unfound = np.abs(stored.nearest) > 1e-5
    assert unfound.mean() <= MOST_UNFOUND, f"{unfound.sum()} vectors of {len(unfound)} are not found by a search"
    return len(stored.ids)
