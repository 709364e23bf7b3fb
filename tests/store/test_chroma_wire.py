"""What goes over the socket to the Chroma child, and the loop at its other end."""

from __future__ import annotations

import math
import os
import pickle
import threading
from multiprocessing import Pipe
from typing import Any

import numpy as np
import pytest

from ragd.store.chroma import serving, wire
from ragd.store.chroma.child import OPERATIONS, Chroma, FolderDamagedError, problem_of, where_clause
from ragd.store.chroma.wire import Answer, Request


def test_a_request_survives_the_way() -> None:
    vectors = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    request = Request(
        7,
        "upsert",
        "name",
        ids=["a", "b"],
        vectors=wire.pack_vectors(list(vectors)),
        metadatas=[{"n": 1, "flag": True, "share": 0.5, "text": "ü"}, {}],
        documents=[None, "text"],
    )
    back = wire.decode_request(wire.encode(request))
    assert back == request
    assert [type(value) for value in back.metadatas[0].values()] == [int, bool, float, str]
    assert np.array_equal(wire.unpack_vectors(back.vectors, 3), vectors)


def test_a_pickle_is_no_message() -> None:
    for decode in (wire.decode_request, wire.decode_answer):
        with pytest.raises(ValueError):
            decode(pickle.dumps({"number": 1}))


def test_fault_d4_values_are_cleaned_at_the_border() -> None:
    cleaned = wire.clean_metadata(
        {
            "text": "plain",
            "lone": "a\udce9b",
            "none": None,
            "nan": math.nan,
            "numpy_nan": np.float32("inf"),
            "list": ["x"],
            "map": {},
            "number": np.int32(3),
            "flag": np.bool_(True),
            "huge": 2**64,
            "": 1,
            "#hidden": 1,
            "$where": 1,
            "chroma:document": "x",
        }
    )
    assert cleaned == {"text": "plain", "lone": "a\\udce9b", "number": 3, "flag": True, "huge": str(2**64)}
    assert [type(value) for value in cleaned.values()] == [str, str, int, bool, str]


def test_conditions_are_joined_by_and() -> None:
    assert where_clause({}) is None
    assert where_clause({"a": 1}) == {"a": {"$eq": 1}}
    assert where_clause({"a": 1, "b": True}) == {"$and": [{"a": {"$eq": 1}}, {"b": {"$eq": True}}]}


def test_errors_are_told_apart() -> None:
    import chromadb.errors

    internal = chromadb.errors.InternalError
    expected = {
        internal("Error loading hnsw index"): "damaged",
        internal("Error deserializing pickle file: eval error"): "damaged",
        internal("Error executing plan: Internal error: Error finding id"): "damaged",
        FolderDamagedError("torn"): "damaged",
        internal("error returned from database: (code: 13) database or disk is full"): "failed",
        internal("database is locked"): "failed",
        internal("something new"): "failed",
        ValueError("wrong"): "refused",
        chromadb.errors.NotFoundError("no such collection"): "refused",
    }
    assert {str(error): problem_of(error) for error in expected} == {
        str(error): word for error, word in expected.items()
    }


def test_every_operation_is_a_method_and_no_other_is_reached() -> None:
    assert all(callable(getattr(Chroma, name)) for name in OPERATIONS)
    with pytest.raises(ValueError, match="unknown operation"):
        Chroma.answer(object.__new__(Chroma), Request(1, "close"))


class Counting:
    """An opened folder that remembers what it was asked and whether it was closed."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.closed = False

    def answer(self, request: Request) -> Answer:
        self.asked.append(request.operation)
        if request.operation == "fail":
            raise ValueError("not that")
        return Answer(0, count=len(self.asked))

    def close(self) -> None:
        self.closed = True


def run(operations: list[str], opened: Any) -> list[Answer]:
    ours, theirs = Pipe()
    thread = threading.Thread(target=serving.serve, args=(theirs, os.getppid(), lambda: opened, lambda _: "refused"))
    thread.start()
    answers = []
    for number, operation in enumerate(operations, start=10):
        ours.send_bytes(wire.encode(Request(number, operation)))
        answers.append(wire.decode_answer(ours.recv_bytes()))
    ours.close()
    thread.join(10)
    theirs.close()
    return answers


def test_the_loop_answers_by_number_goes_on_after_an_error_and_closes_at_the_end() -> None:
    opened = Counting()
    answers = run(["count", "fail", "count"], opened)
    assert [answer.number for answer in answers] == [10, 11, 12]
    assert [answer.problem for answer in answers] == ["", "refused", ""]
    assert answers[1].message == "ValueError: not that"
    assert opened.closed


def test_a_daemon_that_is_gone_ends_the_loop_even_if_its_socket_was_inherited() -> None:
    ours, theirs = Pipe()
    assert serving.next_message(theirs, parent=os.getppid() + 1, poll_s=0.01) is None
    ours.send_bytes(b"x")
    assert serving.next_message(theirs, parent=os.getppid(), poll_s=0.01) == b"x"
    ours.close()
    assert serving.next_message(theirs, parent=os.getppid(), poll_s=0.01) is None
    theirs.close()
