"""What the daemon and its Chroma child say to each other: one request, one answer, over a socket pair.

What must stay true: messages are msgpack with a fixed shape, never pickle, and vectors travel as raw
little-endian float32; text that is not valid Unicode or a number that is not one never gets as far as Chroma
(FAULTS D4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ragd.store.types import MetadataValue

Scalar = str | int | float | bool
_INT64 = 2**63


class Request(msgspec.Struct, array_like=True):
    """`number` comes back in the answer, so that the answer to a request nobody waits for any more is known
    as such."""

    number: int
    operation: str
    collection: str = ""
    dimension: int = 0
    ids: list[str] = []
    vectors: bytes = b""
    metadatas: list[dict[str, Scalar]] = []
    documents: list[str | None] = []
    where: dict[str, Scalar] = {}
    limit: int = 0
    offset: int = 0


class Answer(msgspec.Struct, array_like=True):
    """`problem` is empty, "refused" (the request was wrong), "failed", or "damaged"."""

    number: int
    problem: str = ""
    message: str = ""
    ids: list[str] = []
    scores: bytes = b""
    count: int = 0
    names: list[str] = []


def encode(message: Request | Answer) -> bytes:
    return msgspec.msgpack.encode(message)


def decode_request(data: bytes) -> Request:
    return msgspec.msgpack.decode(data, type=Request)


def decode_answer(data: bytes) -> Answer:
    return msgspec.msgpack.decode(data, type=Answer)


def pack_vectors(vectors: Sequence[npt.NDArray[np.float32]]) -> bytes:
    """Rows of equal length, one after the other."""
    return np.ascontiguousarray(vectors, dtype="<f4").tobytes()


def unpack_vectors(data: bytes, dimension: int) -> npt.NDArray[np.float32]:
    """Shape (n, dimension)."""
    return np.frombuffer(data, dtype="<f4").reshape(-1, dimension).astype(np.float32, copy=False)


def clean_text(text: str) -> str:
    """`text` with each lone surrogate shown as \\udcXX: Chroma takes valid Unicode only."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def clean_metadata(metadata: Mapping[str, Any]) -> dict[str, Scalar]:
    """The values Chroma can keep, as plain Python: None, empty lists, nested maps and numbers that are none
    are left out, numpy scalars become Python ones, an integer beyond 64 bits becomes its decimal text."""
    cleaned = {}
    for key, value in metadata.items():
        scalar = clean_value(value)
        if scalar is not None and key and not key.startswith(("#", "$", "chroma:")):
            cleaned[clean_text(key)] = scalar
    return cleaned


def clean_value(value: MetadataValue | Any) -> Scalar | None:
    """One value as Chroma can keep it, or None for one it cannot."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if -_INT64 <= value < _INT64 else str(int(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return None
