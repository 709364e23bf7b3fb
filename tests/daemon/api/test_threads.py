"""Blocking calls beside an event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from ragd.daemon.api.threads import in_thread


def test_results_and_errors_come_back() -> None:
    def fail() -> None:
        raise KeyError("x")

    async def scene() -> None:
        assert await in_thread(lambda: threading.current_thread().daemon) is True
        with pytest.raises(KeyError):
            await in_thread(fail)

    asyncio.run(scene())


def test_a_place_is_given_back_when_the_call_ends_not_when_its_caller_leaves() -> None:
    async def scene() -> None:
        places = asyncio.Semaphore(1)
        gate = threading.Event()
        first = asyncio.ensure_future(in_thread(gate.wait, places))
        await asyncio.sleep(0.05)
        first.cancel()
        second = asyncio.ensure_future(in_thread(lambda: "second", places))
        done, _ = await asyncio.wait({second}, timeout=0.1)
        assert not done
        gate.set()
        assert await asyncio.wait_for(second, 5) == "second"

    asyncio.run(scene())


@pytest.mark.process
def test_a_hung_call_does_not_keep_the_process_alive() -> None:
    script = (
        "import asyncio, threading\n"
        "from ragd.daemon.api.threads import in_thread\n"
        "async def main():\n"
        "    task = asyncio.ensure_future(in_thread(threading.Event().wait))\n"
        "    await asyncio.sleep(0.1)\n"
        "asyncio.run(main())\n"
        "print('ended')\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=20, check=True)
    assert ended.stdout == b"ended\n"
