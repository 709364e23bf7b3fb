"""Parsing in children: every fate of a file is told apart, none of them touches another file or the
daemon."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragd.chunkers.records import Cut, CutSettings, ModelBudget, SourceFile
from ragd.chunkers.tokens import PlainCounter
from ragd.daemon.parsing.limits import ParseLimits
from ragd.daemon.parsing.pool import InlinePool, ParsePool
from ragd.daemon.parsing.process import child_environment
from ragd.daemon.parsing.wire import (
    CounterSpec,
    Failed,
    ParseFailedError,
    ParseJob,
    ParsePoolError,
    decode_answer,
    encode_answer,
)

HERE = str(Path(__file__).parent)
STUB = "parse_stub:cut"
PLAIN = CounterSpec("plain")
BUDGET = ModelBudget(max_tokens=77)

MakePool = Callable[..., ParsePool]


@pytest.fixture
def make_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakePool]:
    monkeypatch.setenv("PYTHONPATH", HERE)
    made: list[ParsePool] = []

    def make(seconds: float = 20.0, memory_mb: int = 256, workers: int = 1, **more: float) -> ParsePool:
        limits = ParseLimits(parse_seconds=seconds, parse_memory_mb=memory_mb, niceness=3)
        made.append(ParsePool(limits, PLAIN, BUDGET, workers=workers, cutter=STUB, **more))
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def job(text: str) -> ParseJob:
    return ParseJob(SourceFile(text.encode(), "notes", b"a/\xff.md"), CutSettings())


def fate(pool: ParsePool | InlinePool, text: str) -> tuple[str, str]:
    """Reason and detail of a file that must fail."""
    with pytest.raises(ParseFailedError) as caught:
        pool.submit(job(text)).result(30)
    return caught.value.reason, caught.value.detail


def test_a_cut_comes_back_as_it_was(make_pool: MakePool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)
    from parse_stub import sample_cut

    assert make_pool().submit(job("good text")).result(30) == sample_cut("good text", PlainCounter(), 77)


def test_an_answer_survives_the_wire() -> None:
    cut = Cut(
        type="t",
        chunker="c",
        title="é\n",
        recipe="r",
        skipped="binary",
        canonical_text="x",
        metadata={"a": [1]},
    )
    for answer in (cut, Failed("memory", "d"), None):
        assert decode_answer(encode_answer(answer)) == (answer, False)
    assert decode_answer(encode_answer(cut, is_last=True)) == (cut, True)


@pytest.mark.parametrize("frame", [b"", b"x", b"cabc", b"f\x93", b"c\x81\xa4type\x01"])
def test_what_is_no_answer_is_refused(frame: bytes) -> None:
    with pytest.raises(ValueError, match="not an answer"):
        decode_answer(frame)


def test_fault_f6_each_bad_file_has_its_reason_and_the_good_ones_are_cut(make_pool: MakePool) -> None:
    pool = make_pool(seconds=1.0)
    bad = {"raise {": "parse_error", "hang": "timeout", "exit": "crashed", "memory 400": "memory"}
    texts = [f"good {number}" for number in range(25)]
    for place, text in enumerate(bad):
        texts.insert(place * 6, text)
    futures = {text: pool.submit(job(text)) for text in texts}
    reasons = {}
    for text, future in futures.items():
        error = future.exception(30)
        if error is None:
            assert future.result().chunks[0].text == text
        else:
            assert isinstance(error, ParseFailedError)
            reasons[text] = error.reason
    assert reasons == bad
    assert pool.child_starts == 4, "the one that raised in Python goes on, the other three are replaced"


def test_a_parser_that_sleeps_is_cut_off_at_the_limit(make_pool: MakePool) -> None:
    pool = make_pool(seconds=0.5)
    pool.submit(job("good")).result(30)
    began = time.monotonic()
    assert fate(pool, "hang") == ("timeout", "not parsed within 0.5 s")
    assert time.monotonic() - began < 3.0


def test_a_parser_that_loops_is_cut_off_at_the_limit(make_pool: MakePool) -> None:
    assert fate(make_pool(seconds=0.5), "spin")[0] == "timeout"


def test_the_processor_time_limit_counts_as_a_timeout(make_pool: MakePool) -> None:
    assert fate(make_pool(), "xcpu")[0] == "timeout"


@pytest.mark.parametrize(("text", "detail"), [("exit", "exit code 3"), ("quit", "exit code 4"), ("segv", "SIGSEGV")])
def test_a_crash_says_how_the_process_ended(make_pool: MakePool, text: str, detail: str) -> None:
    assert fate(make_pool(), text) == ("crashed", f"the parser ended its process ({detail})")


def test_an_exception_is_told_by_its_name_and_message(make_pool: MakePool) -> None:
    reason, detail = fate(make_pool(), "raise {")
    assert (reason, detail.split(":")[0]) == ("parse_error", "JSONDecodeError")


def test_endless_recursion_is_a_parse_error(make_pool: MakePool) -> None:
    assert fate(make_pool(), "recurse")[1].startswith("RecursionError")


def test_memory_is_limited_above_the_base_and_the_child_is_replaced(make_pool: MakePool) -> None:
    pool = make_pool(memory_mb=128)
    pool.submit(job("memory 60")).result(30)
    assert fate(pool, "memory 200") == ("memory", "parsing it takes more than 128 MB")
    pool.submit(job("good")).result(30)
    assert pool.child_starts == 2


def test_an_answer_far_larger_than_its_file_is_refused(make_pool: MakePool) -> None:
    pool = make_pool(memory_mb=512)
    assert fate(pool, "huge") == ("parse_error", "its chunks are far larger than the file")
    pool.submit(job("good")).result(30)


def test_text_that_is_no_unicode_is_a_parse_error(make_pool: MakePool) -> None:
    reason, detail = fate(make_pool(), "surrogate")
    assert reason == "parse_error"
    assert detail.startswith("its chunks cannot be passed on")


def test_what_is_no_answer_is_a_crash(make_pool: MakePool) -> None:
    reason, detail = fate(make_pool(), "garbage")
    assert reason == "crashed"
    assert "not an answer" in detail


@pytest.mark.parametrize("text", ["connect", "program"])
def test_law_nothing_leaves_the_machine_a_parser_has_no_network_and_no_programs(make_pool: MakePool, text: str) -> None:
    reason, detail = fate(make_pool(), text)
    assert reason == "parse_error"
    assert detail.startswith("PermissionError: a parser may not use ")


def test_a_parser_writes_no_file(make_pool: MakePool, tmp_path: Path) -> None:
    target = tmp_path / "made"
    reason, detail = fate(make_pool(), f"write {target}")
    assert (reason, detail.split(":")[0]) == ("parse_error", "OSError")
    assert not target.exists() or target.read_bytes() == b""


def test_fault_g5_nothing_of_a_parser_reaches_standard_output(
    make_pool: MakePool, capfd: pytest.CaptureFixture[str]
) -> None:
    make_pool().submit(job("print")).result(30)
    assert capfd.readouterr() == ("", "")


def test_fault_f12_a_child_inherits_no_descriptor_but_its_pipe(make_pool: MakePool, tmp_path: Path) -> None:
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(lock, True)  # even so
    try:
        report = make_pool().submit(job("report")).result(30).metadata
    finally:
        os.close(lock)
    descriptors = report["descriptors"]
    assert isinstance(descriptors, list)
    assert [name for name in descriptors if str(tmp_path) in str(name)] == []
    assert len([name for name in descriptors if str(name).startswith("socket:")]) == 1
    assert report["pid"] == report["session"], "a session of its own: Ctrl-C in the terminal is not for it"
    assert report["niceness"] == max(3, os.getpriority(os.PRIO_PROCESS, 0))
    assert report["folder"] == "/"


def test_a_child_gets_no_secret_of_the_environment() -> None:
    environment = {"HOME": "/h", "HF_TOKEN": "secret", "https_proxy": "http://p", "PATH": "/bin"}
    assert {name for name in child_environment(environment) if name in environment} == {"HOME", "PATH"}


def test_a_child_that_was_killed_while_idle_is_not_the_fault_of_the_next_file(make_pool: MakePool) -> None:
    pool = make_pool()
    pid = pool.submit(job("report")).result(30).metadata["pid"]
    assert isinstance(pid, int)
    os.kill(pid, 9)
    assert pool.submit(job("good")).result(30).chunks[0].text == "good"
    assert pool.child_starts == 2


def test_two_workers_do_not_wait_for_each_other(make_pool: MakePool) -> None:
    pool = make_pool(seconds=8.0, workers=2)
    hung = pool.submit(job("hang"))
    assert pool.submit(job("good")).result(30).chunks[0].text == "good"
    assert not hung.done()


def test_all_children_but_one_end_when_idle(make_pool: MakePool) -> None:
    pool = make_pool(workers=2, idle_seconds=0.2)
    pids = set()
    for _ in range(2):
        futures = [pool.submit(job("report")) for _ in range(6)]
        pids |= {future.result(30).metadata["pid"] for future in futures}
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and sum(map(_is_alive, pids)) > 1:
        time.sleep(0.05)
    assert sum(map(_is_alive, pids)) <= 1
    assert pool.submit(job("good")).result(30).chunks


def _is_alive(pid: object) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_closing_ends_every_future_and_every_child_at_once(make_pool: MakePool) -> None:
    pool = make_pool(seconds=60)
    pid = pool.submit(job("report")).result(30).metadata["pid"]
    futures = [pool.submit(job("hang")) for _ in range(3)]
    time.sleep(0.2)
    began = time.monotonic()
    pool.close()
    assert time.monotonic() - began < 3.0
    assert [type(future.exception(1)) for future in futures] == [ParsePoolError] * 3
    assert not _is_alive(pid)
    with pytest.raises(ParsePoolError):
        pool.submit(job("good"))


def test_a_future_that_was_cancelled_is_not_parsed(make_pool: MakePool) -> None:
    pool = make_pool(seconds=2.0)
    hung, waiting = pool.submit(job("hang")), pool.submit(job("exit"))
    assert waiting.cancel()
    assert isinstance(hung.exception(30), ParseFailedError)
    assert pool.submit(job("good")).result(30).chunks


@pytest.mark.parametrize(
    ("counter", "cutter", "detail"),
    [
        (CounterSpec("model", "{"), STUB, ""),
        (CounterSpec("dice"), STUB, "dice"),
        (PLAIN, "no_such_module:cut", "no_such_module"),
    ],
)
def test_a_child_that_cannot_start_is_not_the_fault_of_a_file(
    monkeypatch: pytest.MonkeyPatch, counter: CounterSpec, cutter: str, detail: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", HERE)
    pool = ParsePool(ParseLimits(), counter, BUDGET, cutter=cutter)
    try:
        with pytest.raises(ParsePoolError, match=f"(?s)does not start.*{detail}") as caught:
            pool.submit(job("good")).result(60)
        assert "Traceback" in str(caught.value)
    finally:
        pool.close()


@pytest.mark.parametrize("work", ["good", "hang", "spin"])
def test_a_child_ends_with_its_parent(work: str) -> None:
    program = f"""
        import os, time
        from ragd.chunkers.records import CutSettings, ModelBudget, SourceFile
        from ragd.daemon.parsing.limits import ParseLimits
        from ragd.daemon.parsing.pool import ParsePool
        from ragd.daemon.parsing.wire import CounterSpec, ParseJob
        pool = ParsePool(ParseLimits(), CounterSpec("plain"), ModelBudget(), cutter="{STUB}")
        job = lambda text: ParseJob(SourceFile(text, "r", b"p"), CutSettings())
        print(pool.submit(job(b"report")).result().metadata["pid"], flush=True)
        pool.submit(job(b"{work}"))
        time.sleep(0.3)
        os._exit(0)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": HERE},
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    pid = int(done.stdout)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _is_alive(pid):
        time.sleep(0.05)
    assert not _is_alive(pid)


def test_the_pool_in_this_process_tells_the_same_fates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)
    pool = InlinePool(PLAIN, BUDGET, cutter=STUB)
    assert pool.submit(job("good")).result(0).chunks[0].text == "good"
    assert fate(pool, "raise {")[0] == "parse_error"
    pool.close()
    with pytest.raises(ParsePoolError):
        pool.submit(job("good"))


def test_law_the_chunkers_cut_the_same_in_a_child_and_here() -> None:
    text = "# A\n\nSome words é 🧪.\n\n## B\n\n" + "More words stand here. " * 200
    source = SourceFile(text.encode(), "notes", b"a/\xff.md")
    work = ParseJob(source, CutSettings())
    here = InlinePool(PLAIN, BUDGET).submit(work).result()
    pool = ParsePool(ParseLimits(), PLAIN, BUDGET)
    try:
        assert pool.submit(work).result(50) == here
    finally:
        pool.close()
    assert len(here.chunks) > 2
