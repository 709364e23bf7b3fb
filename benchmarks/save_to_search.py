"""From saving a file to finding it, on an index of 10,000 chunks; and answering while much is being indexed.

A real daemon with the real model, asked through its socket. The 10,000 chunks get made-up vectors in the vector cache
beforehand, so that filling the index takes minutes less; what is saved and asked is embedded by the model.

    python benchmarks/save_to_search.py [--chunks 10000] [--saves 40] [--load-chunks 2000]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path

import httpx
import numpy as np
from corpus import text_files

from ragd.daemon.backend import OWNER
from ragd.daemon.config import load_config
from ragd.daemon.engine import Engine
from ragd.store.types import Vectors


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--chunks", type=int, default=10_000)
    options.add_argument("--saves", type=int, default=40)
    options.add_argument("--load-chunks", type=int, default=2_000)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        files, words = place / "files", _words()
        (place / "config.toml").write_text(
            f'[store]\npath = "{place / "state"}"\n[server]\nport = 0\n[[root]]\npath = "{files}"\n'
        )
        _fill(place, files, words, asked.chunks)
        daemon = subprocess.Popen(
            [sys.executable, "-m", "ragd.daemon.cli.main", "--config", str(place / "config.toml"), "run"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            client = _client(place / "state" / "ragd.sock")
            _wait_idle(client)
            print(f"index of {client.get('/v1/status').json()['chunks']} chunks")
            _saves(client, files, words, asked.saves)
            _load(client, files, words, asked.load_chunks)
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(30)


def _words() -> list[str]:
    documents = islice(text_files((".md", ".rst")), 40)
    text = " ".join(path.read_text(errors="replace") for path in documents)
    return [word for word in text.split() if word.isalpha()]


def _note(words: list[str], mark: str, count: int = 110) -> str:
    start = random.randrange(len(words) - count)
    return f"# {' '.join(words[start : start + 4])}\n\n{' '.join(words[start : start + count])} {mark}\n"


def _fill(place: Path, files: Path, words: list[str], chunks: int) -> None:
    """An index as it would be, but for the direction of the vectors."""
    generator = np.random.default_rng(1)

    class MadeUp:
        """Stands in for the model while the index is filled."""

        def __init__(self, identity: object, counter: object) -> None:
            self.identity, self.counter = identity, counter

        def embed_documents(self, texts: list[str]) -> Vectors:
            vectors = generator.standard_normal((len(texts), 384)).astype(np.float32)
            return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    for number in range(chunks):
        folder = files / f"d{number % 100:03}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"n{number}.md").write_text(_note(words, f"note{number}"))
    engine = Engine.open(load_config(place / "config.toml"))
    made_up = MadeUp(engine.model.identity, engine.model.counter)
    engine.model.embedder = lambda: made_up  # type: ignore[method-assign,assignment,return-value]
    engine.start()
    engine.sync(OWNER, [])
    engine.close()


def _client(socket: Path) -> httpx.Client:
    deadline = time.monotonic() + 60
    while not socket.exists():
        if time.monotonic() > deadline:
            raise SystemExit("the daemon did not start")
        time.sleep(0.05)
    return httpx.Client(transport=httpx.HTTPTransport(uds=str(socket)), base_url="http://localhost", timeout=60)


def _wait_idle(client: httpx.Client) -> None:
    while True:
        status = client.get("/v1/status").json()
        if status["state"] == "idle" and status["model_state"] == "ready":
            return
        time.sleep(0.2)


def _search(client: httpx.Client, query: str) -> list[dict[str, object]]:
    return list(client.post("/v1/search", json={"query": query, "k": 5}).raise_for_status().json()["hits"])


def _saves(client: httpx.Client, files: Path, words: list[str], count: int) -> None:
    took = []
    for number in range(count):
        mark = f"zqmark{number}x{os.getpid()}"
        path = files / f"d{number % 100:03}" / f"n{number}.md"
        path.write_text(_note(words, mark))
        began = time.perf_counter()
        while not any(mark in str(hit["text"]) for hit in _search(client, mark)):
            time.sleep(0.01)
        took.append(time.perf_counter() - began)
        time.sleep(random.uniform(0.1, 0.5))
    _report("save -> searchable (hybrid)", took, "median under 1.0 s, p95 under 2 s")


def _load(client: httpx.Client, files: Path, words: list[str], chunks: int) -> None:
    """Latencies while `chunks` new chunks are embedded and written."""
    before = client.get("/v1/status").json()["chunks"]
    folder = files / "load"
    folder.mkdir()
    for number in range(chunks):
        (folder / f"l{number}.md").write_text(_note(words, f"load{number}"))
    status_s, search_s = [], []
    ended = threading.Event()

    def ask_status() -> None:
        with _client_like(client) as other:
            while not ended.is_set():
                began = time.perf_counter()
                other.get("/v1/status").raise_for_status()
                status_s.append(time.perf_counter() - began)
                time.sleep(0.1)

    thread = threading.Thread(target=ask_status)
    thread.start()
    began_load = time.perf_counter()
    try:
        while client.get("/v1/status").json()["chunks"] < before + chunks:
            began = time.perf_counter()
            _search(client, " ".join(random.sample(words, 6)))
            search_s.append(time.perf_counter() - began)
            time.sleep(0.25)
    finally:
        ended.set()
        thread.join()
    print(f"{chunks} chunks indexed in {time.perf_counter() - began_load:.0f} s while asked")
    _report("status while indexing", status_s, "p95 under 0.1 s")
    _report("search while indexing", search_s, "p95 under 0.4 s")


def _client_like(client: httpx.Client) -> httpx.Client:
    transport = client._transport
    assert isinstance(transport, httpx.HTTPTransport)
    path = transport._pool._uds  # the same socket, another connection
    return httpx.Client(transport=httpx.HTTPTransport(uds=path), base_url="http://localhost", timeout=60)


def _report(name: str, seconds: list[float], target: str) -> None:
    ordered = sorted(seconds)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    print(
        f"{name}: {len(ordered)} times, median {statistics.median(ordered):.3f} s, p95 {p95:.3f} s,"
        f" most {ordered[-1]:.3f} s (target: {target})"
    )


if __name__ == "__main__":
    main()
