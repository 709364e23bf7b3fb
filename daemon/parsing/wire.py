"""What goes over the pipe between the daemon and a parsing child: msgpack frames of records.

What must stay true: data only. A frame is decoded into declared types or refused; nothing in it is ever
executed, so a child that a hostile file has taken over can answer wrongly but cannot reach into the daemon.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, get_type_hints

import msgspec

from ragd.chunkers.records import Cut, CutSettings, ModelBudget, SourceFile
from ragd.chunkers.tokens import ModelTokenCounter, PlainCounter, TokenCounter
from ragd.daemon.parsing.limits import ParseLimits


class ParseFailedError(Exception):
    """One file could not be parsed. `reason` is timeout, memory, crashed or parse_error; `detail` is for
    people."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class ParsePoolError(Exception):
    """No file can be parsed: a child does not start, or the pool was closed. Not the fault of a file."""


@dataclass(frozen=True, slots=True)
class CounterSpec:
    """How the child counts tokens, as data. `kind` is "model" (with the text of a tokenizer.json) or
    "plain"."""

    kind: str
    tokenizer_json: str = ""
    special_tokens: int = 0

    def build(self) -> TokenCounter:
        """Raises ValueError for a kind that is not known."""
        if self.kind == "model":
            return ModelTokenCounter(self.tokenizer_json)
        if self.kind == "plain":
            return PlainCounter(self.special_tokens)
        raise ValueError(f"no token counter is called {self.kind!r}")


@dataclass(frozen=True, slots=True)
class ParseJob:
    """One file to cut."""

    source: SourceFile
    settings: CutSettings


@dataclass(frozen=True, slots=True)
class Setup:
    """The first frame to a child: what holds for all of its jobs. `cutter` is "module:function"."""

    counter: CounterSpec
    budget: ModelBudget
    limits: ParseLimits
    cutter: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The answer to a job that failed inside the child, which lives on; or, as first answer, that it cannot
    start."""

    reason: str
    detail: str


def _frame_of_cut() -> type[Any]:
    """`Cut` for msgspec, which does not read the recursive type of `metadata`."""
    hints = get_type_hints(Cut)
    hints["metadata"] = dict[str, Any]
    return msgspec.defstruct("CutFrame", [(item.name, hints[item.name]) for item in dataclasses.fields(Cut)])


_CutFrame = _frame_of_cut()
_READY = b"ready"
_encoder = msgspec.msgpack.Encoder()
_setup_decoder = msgspec.msgpack.Decoder(Setup)
_job_decoder = msgspec.msgpack.Decoder(ParseJob)
_failed_decoder = msgspec.msgpack.Decoder(Failed)
_cut_decoder = msgspec.msgpack.Decoder(_CutFrame)


def encode_setup(setup: Setup) -> bytes:
    return _encoder.encode(setup)


def decode_setup(frame: bytes) -> Setup:
    return _setup_decoder.decode(frame)


def encode_job(job: ParseJob) -> bytes:
    return _encoder.encode(job)


def decode_job(frame: bytes) -> ParseJob:
    return _job_decoder.decode(frame)


def encode_answer(answer: Cut | Failed | None, *, is_last: bool = False) -> bytes:
    """A cut, a failure, or None: ready for jobs. `is_last`: the child had better not be used any more."""
    if answer is None:
        return _READY
    kind = b"f" if isinstance(answer, Failed) else b"c"
    return (kind.upper() if is_last else kind) + _encoder.encode(answer)


def decode_answer(frame: bytes) -> tuple[Cut | Failed | None, bool]:
    """The answer and whether it is the last one. Raises ValueError when the frame is none of the three."""
    if frame == _READY:
        return None, False
    kind, is_last = frame[:1].lower(), frame[:1].isupper()
    try:
        if kind == b"f":
            return _failed_decoder.decode(frame[1:]), is_last
        values = _cut_decoder.decode(frame[1:])
    except msgspec.MsgspecError as error:
        raise ValueError(f"not an answer: {error}") from error
    return Cut(**{item.name: getattr(values, item.name) for item in dataclasses.fields(Cut)}), is_last


def answer_limit_bytes(source: SourceFile) -> int:
    """How large an answer may be: a chunk carries its text several times (text, embedded text, prefix), a
    file does not grow without end."""
    return 16_000_000 + 24 * len(source.data)
