"""A parsing child: reads jobs from its pipe, answers each with a cut or a failure, ends when the pipe does.

Started as `python -m ragd.daemon.parsing.child DESCRIPTOR`. What must stay true: it never touches a file of
the person, and whatever a parser raises becomes an answer.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection

from ragd.chunkers.records import Cut, CutSettings, ModelBudget, SourceFile
from ragd.chunkers.tokens import TokenCounter
from ragd.daemon.parsing import limits, wire

Cutter = Callable[[SourceFile, CutSettings, TokenCounter, ModelBudget], Cut]

_DETAIL_CHARACTERS = 500


def main(descriptor: int) -> None:
    connection = Connection(descriptor)
    limits.end_with_parent(descriptor)
    setup = wire.decode_setup(connection.recv_bytes())
    try:
        limits.harden(setup.limits)
        cutter, counter = load_cutter(setup.cutter), setup.counter.build()
        base_bytes = limits.address_space_bytes()
        limits.cap_memory(setup.limits, base_bytes)
    except Exception:  # noqa: BLE001 - whatever it is, the daemon must hear of it
        connection.send_bytes(wire.encode_answer(wire.Failed("broken", traceback.format_exc(limit=-3))))
        return
    connection.send_bytes(wire.encode_answer(None))
    while True:
        try:
            frame = connection.recv_bytes()
        except EOFError:
            return
        limits.cap_processor_time(setup.limits)
        connection.send_bytes(_answer(frame, cutter, counter, setup, base_bytes))


def load_cutter(name: str) -> Cutter:
    """The function that "module:function" names."""
    module, _, attribute = name.partition(":")
    cutter: Cutter = getattr(importlib.import_module(module), attribute)
    return cutter


def _answer(frame: bytes, cutter: Cutter, counter: TokenCounter, setup: wire.Setup, base_bytes: int) -> bytes:
    """The frame to send; it says whether this process had better end after it."""
    try:
        job = wire.decode_job(frame)
        answer = run_job(job, cutter, counter, setup.budget)
        encoded = wire.encode_answer(answer, is_last=limits.is_bloated(setup.limits, base_bytes))
        if len(encoded) <= wire.answer_limit_bytes(job.source):
            return encoded
        failed = wire.Failed("parse_error", "its chunks are far larger than the file")
    except (UnicodeEncodeError, TypeError) as error:  # a record that is not what its type says
        failed = wire.Failed("parse_error", f"its chunks cannot be passed on: {error}"[:_DETAIL_CHARACTERS])
    except MemoryError:
        failed = wire.Failed("memory", f"parsing it takes more than {setup.limits.parse_memory_mb} MB")
    return wire.encode_answer(failed, is_last=True)


def run_job(job: wire.ParseJob, cutter: Cutter, counter: TokenCounter, budget: ModelBudget) -> Cut | wire.Failed:
    """Cuts one file. Raises MemoryError; every other exception of the parser is its failure."""
    try:
        return cutter(job.source, job.settings, counter, budget)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the file has failed, the child goes on
        return wire.Failed("parse_error", f"{type(error).__name__}: {error}"[:_DETAIL_CHARACTERS])


if __name__ == "__main__":
    main(int(sys.argv[1]))
