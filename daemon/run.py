"""The daemon in the foreground: what `ragd run` does, and a service manager.

What must stay true: the lock comes first and the address second, before anything is opened; on SIGTERM or Ctrl-C the
current batch ends, everything is closed, and the exit code is 0.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from ragd.daemon.api.app import create_app
from ragd.daemon.api.auth import LOOPBACK_HOSTS, Credential, SocketOwner, Tokens, load_token
from ragd.daemon.api.server import ApiServer, bind_tcp
from ragd.daemon.api.sockets import bind_unix
from ragd.daemon.backend import OWNER
from ragd.daemon.config import Config
from ragd.daemon.engine import Engine
from ragd.daemon.errors import ModelUnavailableError
from ragd.daemon.schedule import Schedule, Timer
from ragd.daemon.watching import Watching

log = logging.getLogger(__name__)

Report = Callable[[Mapping[str, Any]], None]
REPORT_S = 0.5
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run_daemon(config: Config, *, report: Report = lambda _: None) -> int:
    """Run until a signal; `report` is shown the status now and then. Returns the exit code.

    Raises the UserErrors of opening (state locked, address in use, model, store); a model whose weights turn out
    not to load ends the daemon with that error.
    """
    stopping = threading.Event()
    with ExitStack() as closing, _stopped_by_signals(stopping):
        listeners: list[socket.socket] = []

        def bind() -> None:
            # the port first: when it is taken, no socket file is left behind
            listeners.append(bind_tcp(config.server.host, config.server.port))
            closing.callback(listeners[0].close)
            listeners.append(bind_unix(config.socket_path))
            closing.callback(listeners[1].close)

        _be_nice(config.limits.niceness)
        engine = Engine.open(config, before_store=bind)
        closing.callback(engine.close)
        tokens = Tokens([Credential(load_token(config.token_file), OWNER)])
        tcp, unix = listeners
        host, port = tcp.getsockname()[:2]
        host = f"[{host}]" if ":" in host else host
        hosts = LOOPBACK_HOSTS | {host}  # any address of 127.0.0.0/8 may be the configured one
        served = [(unix, create_app(engine, SocketOwner())), (tcp, create_app(engine, tokens, hosts=hosts))]
        server = ApiServer(served, socket_path=config.socket_path)
        closing.callback(server.stop)
        engine.serve()
        server.start()
        watching = Watching(engine.roots, config.watch, engine.inbox.post)
        engine.watch_state = watching.state
        engine.worker.on_walked = watching.on_walked
        closing.callback(watching.stop)
        watching.start()
        engine.walk_all()
        engine.start()
        schedule = Schedule(_timers(config, engine))
        closing.callback(schedule.stop)
        schedule.start()
        log.info("serving on %s and http://%s:%d", config.socket_path, host, port)
        failure = _wait(engine, stopping, report)
        engine.is_stopping = True
        report(engine.status(OWNER))
    if failure is not None:
        raise failure
    return 0


def _wait(engine: Engine, stopping: threading.Event, report: Report) -> ModelUnavailableError | None:
    """Until a signal comes, or the model turns out not to load."""
    while not stopping.wait(REPORT_S):
        report(engine.status(OWNER))
        if engine.model.state == "failed":
            try:
                engine.model.embedder()
            except ModelUnavailableError as error:
                return error
    return None


def _timers(config: Config, engine: Engine) -> list[Timer]:
    def retry() -> None:
        engine.worker.retry_due(time.time_ns())

    return [Timer("walk", config.schedule.walk, engine.walk_all), Timer("retry", config.schedule.retry, retry)]


@contextmanager
def _stopped_by_signals(stopping: threading.Event) -> Iterator[None]:
    def stop(_number: int, _frame: object) -> None:
        stopping.set()

    before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _be_nice(niceness: int) -> None:
    """Stand back for other programs. A service manager may have lowered us further already."""
    if hasattr(os, "setpriority"):
        now = os.getpriority(os.PRIO_PROCESS, 0)
        if now < niceness:
            os.setpriority(os.PRIO_PROCESS, 0, niceness)
