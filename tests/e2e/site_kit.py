"""A `sitecustomize` for the processes of a test: notes what they embed, and to whom they connect.

What must stay true: it only adds lines to a file, each in one write, so that a kill loses nothing that was noted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

_PROGRAM = '''
import hashlib, importlib.abc, importlib.util, json, os, sys, time

def note(file, *what):
    line = json.dumps([os.getpid(), *what]) + "\\n"
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, line.encode())
    os.close(descriptor)

class Embedding(importlib.abc.MetaPathFinder):
    """Wraps the hash embedder when it is imported."""
    def find_spec(self, name, path=None, target=None):
        if name != "ragd.store.embedding.hashing":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            embed = module.HashEmbedder.embed_documents
            def embed_documents(self, texts):
                note({embedded!r}, [hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()
                                    for text in texts])
                time.sleep({batch_seconds!r})
                return embed(self, texts)
            module.HashEmbedder.embed_documents = embed_documents
        spec.loader.exec_module = exec_module
        return spec

def is_local(address):
    if not isinstance(address, tuple):
        return True  # a path: a unix socket
    host = str(address[0])
    return host in ("localhost", "::1", "") or host.startswith("127.")

def audit(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        if arguments[1] is not None and not is_local(arguments[1]):
            note({connects!r}, event, repr(arguments[1]), sys.argv)
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0]
        if host is not None and not is_local((host,)):
            note({connects!r}, event, repr(host), sys.argv)

sys.meta_path.insert(0, Embedding())
sys.addaudithook(audit)
note({started!r}, getattr(sys, "orig_argv", []))
'''


def is_local(address: object) -> bool:
    """Whether an address is this machine: a path of a unix socket, or loopback. The program below does the same."""
    host = str(address[0]) if isinstance(address, tuple) else ""
    return host in ("localhost", "::1", "") or host.startswith("127.")


@dataclass
class Site:
    """Put `folder` on PYTHONPATH. Each list has one entry a line that was noted, the process id first."""

    folder: Path
    batch_seconds: float = 0.0
    """What a batch takes the hash embedder in addition: a real model takes seconds."""
    embedded_file: Path = field(init=False)
    connects_file: Path = field(init=False)
    started_file: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.embedded_file = self.folder / "embedded.txt"
        self.connects_file = self.folder / "connects.txt"
        self.started_file = self.folder / "started.txt"
        program = _PROGRAM
        for name in ("embedded", "connects", "started"):
            program = program.replace(f"{{{name}!r}}", repr(str(self.folder / f"{name}.txt")))
        program = program.replace("{batch_seconds!r}", repr(self.batch_seconds))
        (self.folder / "sitecustomize.py").write_text(program, encoding="utf-8")

    def connects(self) -> list[list[object]]:
        """[pid, event, address, argv] of everything that would leave this machine."""
        return _lines(self.connects_file)

    def started(self) -> list[list[str]]:
        """The command line of every Python process."""
        return [[str(word) for word in line[1]] for line in _lines(self.started_file) if isinstance(line[1], list)]

    def batches(self) -> list[tuple[int, list[str]]]:
        """(pid, hashes of the texts) of every batch that was handed to the hash embedder, in order."""
        found = []
        for line in _lines(self.embedded_file):
            pid, texts = line
            assert isinstance(pid, int)
            assert isinstance(texts, list)
            found.append((pid, [str(text) for text in texts]))
        return found

    def size(self) -> int:
        """Grows at the beginning of each batch."""
        return self.embedded_file.stat().st_size if self.embedded_file.exists() else 0

    def texts(self) -> int:
        """Texts handed to the hash embedder so far."""
        return sum(len(texts) for _, texts in self.batches())


def _lines(file: Path) -> list[list[object]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@dataclass
class EmbeddedTwice:
    """What was embedded more than once, over all lives of a daemon."""

    texts: int = 0
    most_after_one_kill: int = 0
    wrong: list[str] = field(default_factory=list)
    """Texts that were embedded again though they were not in the last batch of an earlier life."""


def embedded_twice(batches: list[tuple[int, list[str]]]) -> EmbeddedTwice:
    """A kill may cost the batch that was under way: only what was in the last batch of a life may come again, and
    only in a later life."""
    found = EmbeddedTwice()
    last_batch_of: dict[int, set[str]] = {}
    for pid, texts in batches:
        last_batch_of[pid] = set(texts)
    last_life: dict[str, int] = {}
    again: dict[int, int] = {}
    for pid, texts in batches:
        for text in texts:
            before = last_life.get(text)
            if before is not None:
                found.texts += 1
                again[before] = again.get(before, 0) + 1
                if before == pid or text not in last_batch_of[before]:
                    found.wrong.append(text)
            last_life[text] = pid
    found.most_after_one_kill = max(again.values(), default=0)
    return found
