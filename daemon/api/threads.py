"""Blocking calls for an event loop, each on a thread of its own that never keeps the process alive.

What must stay true: a caller that is cancelled stops waiting at once; a place among the calls at once is
given back only when the call has really ended.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

_Result = TypeVar("_Result")


async def in_thread(call: Callable[[], _Result], places: asyncio.Semaphore | None = None) -> _Result:
    """What the call returns or raises. `places` bounds how many run at once. (Pools of threads, such as
    anyio's, are waited for when the interpreter ends: a hung call would keep a daemon from stopping.)"""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[_Result] = loop.create_future()
    if places is not None:
        await places.acquire()

    def end(result: _Result | None, error: BaseException | None) -> None:
        if places is not None:
            places.release()
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type]  # None only where the call returned it

    def run() -> None:
        result: _Result | None = None
        error: BaseException | None = None
        try:
            result = call()
        except BaseException as raised:  # noqa: BLE001 - raised again where it is awaited
            error = raised
        with suppress(RuntimeError):  # the loop has ended: nobody waits any more
            loop.call_soon_threadsafe(end, result, error)

    threading.Thread(target=run, name="api-call", daemon=True).start()
    return await answer
