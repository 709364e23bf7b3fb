"""A stand-in for the chunkers in the parsing children: the content of a file says what its parser does."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from ragd.chunkers.records import Chunk, Cut, CutSettings, Dropped, ModelBudget, Parent, SourceFile
from ragd.chunkers.tokens import TokenCounter


def cut(source: SourceFile, _settings: CutSettings, counter: TokenCounter, budget: ModelBudget) -> Cut:
    word, _, argument = source.data.decode().partition(" ")
    actions: dict[str, Any] = {
        "hang": lambda: time.sleep(600),
        "spin": _spin,
        "exit": lambda: os._exit(3),
        "quit": lambda: exit(4),
        "segv": lambda: os.kill(os.getpid(), signal.SIGSEGV),
        "xcpu": lambda: os.kill(os.getpid(), signal.SIGXCPU),
        "raise": lambda: json.loads("{" + argument),
        "memory": lambda: bytearray(int(argument) << 20),
        "recurse": lambda: _recurse(0),
        "connect": lambda: socket.create_connection(("127.0.0.1", 9)),
        "program": lambda: subprocess.run(["true"], check=True),
        "write": lambda: Path(argument).write_text("x"),
        "print": lambda: print("on standard output", flush=True),
        "garbage": _garbage,
    }
    if word == "surrogate":
        return Cut(type="x", chunker="x", title="\udcff", recipe="r")
    if word == "huge":
        return Cut(type="x", chunker="x", title="y" * 40_000_000, recipe="r")
    if word == "report":
        return Cut(type="x", chunker="x", title="t", recipe="r", metadata=_report())
    actions.get(word, lambda: None)()
    return sample_cut(source.data.decode(), counter, budget.max_tokens)


def sample_cut(text: str, counter: TokenCounter, budget_tokens: int) -> Cut:
    """A cut with something in every field."""
    chunk = Chunk(
        id="c1",
        kind="prose",
        section=("A", "B / C"),
        text=text,
        prefix="A > ",
        overlap="",
        embedded_text="A > " + text,
        spans=((0, len(text)),),
        overlap_spans=(),
        start_line=1,
        end_line=1,
        tokens=counter.count(text),
        ordinal=0,
        parent="p1",
        page=2,
    )
    parent = Parent("p1", "section", "A", ("A",), (0, len(text)), 1, 1)
    return Cut(
        type="text",
        chunker="structure",
        title="é",
        recipe=counter.fingerprint,
        chunks=(chunk,),
        parents=(parent,),
        dropped=(Dropped((0, 0), "markup"),),
        metadata={"tags": ["a", {"b": None}], "n": budget_tokens, "x": 1.5, "y": True},
        warnings=("w",),
    )


def _descriptors() -> dict[int, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # the descriptor of the listing itself
            continue
    return found


def _report() -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
        "descriptors": list(_descriptors().values()),
        "environment": sorted(os.environ),
        "folder": os.getcwd(),
    }


def _spin() -> None:
    while True:
        pass


def _recurse(depth: int) -> int:
    return _recurse(depth + 1) + 1


def _garbage() -> None:
    """What a child could send that is not an answer."""
    for number, name in _descriptors().items():
        if name.startswith("socket:"):
            os.write(number, b"\x00\x00\x00\x04cabc")
    os._exit(0)


def cut_or_worse(source: SourceFile, settings: CutSettings, counter: TokenCounter, budget: ModelBudget) -> Cut:
    """What the chunkers give, but for files that begin with one of these words."""
    from ragd.chunkers.cut import cut as real_cut

    if source.data.startswith((b"hang ", b"exit ", b"segv ", b"raise ", b"memory ")):
        return cut(source, settings, counter, budget)
    return real_cut(source, settings, counter, budget)
