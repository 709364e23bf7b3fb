"""Listening: a TCP port on loopback and a unix socket, both served by one thread with one event loop.

What must stay true: the port is taken before the store is opened, so a port in use costs nothing and is named
clearly; the unix socket is 0600 from the moment it exists, and one that still answers is never replaced;
nothing listens beyond loopback unless the person said so.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragd.daemon.api.app import error_response
from ragd.daemon.api.wire import RefusedError
from ragd.daemon.errors import AddressInUseError, NoDaemonError, UsageError

STOP_SECONDS = 2.0
_BACKLOG = 128
_GRACE_SECONDS = 0.5
"""For answers that are nearly ready when the server stops."""

_STOPPING = "the daemon is stopping; start it again with `ragd run`"


def is_loopback(host: str) -> bool:
    """True for `localhost` and the addresses of this machine alone."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def bind_tcp(host: str, port: int, *, beyond_loopback: bool = False) -> socket.socket:
    """A listening socket; port 0 takes any free one.

    Raises AddressInUseError, or UsageError for an address that is not this machine's or not loopback
    (`beyond_loopback` allows the latter; the caller must then ask for tokens).
    """
    if not beyond_loopback and not is_loopback(host):
        raise UsageError(
            f"[server] host = {host!r} is not a loopback address; use 127.0.0.1, "
            "and a reverse proxy with TLS for others"
        )
    address = host.strip("[]")
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise UsageError(f"[server] host = {host!r} is not usable: {error}") from error
    try:
        if sys.platform != "win32":  # there it would let two processes share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(target)
        # Listening at once: two sockets may be bound to one port, only one may listen.
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise _tcp_error(host, port, error) from error
    listener.setblocking(False)
    return listener


class ApiServer:
    """Serves applications on sockets that are already bound, in a thread of its own."""

    def __init__(self, served: Sequence[tuple[socket.socket, ASGIApp]], *, socket_path: Path | None = None) -> None:
        """`socket_path`: where the unix socket among them lies; `stop` removes it if it is still this one."""
        self._listeners = [listener for listener, _ in served]
        self._apps = [_Stoppable(app) for _, app in served]
        self._servers = [uvicorn.Server(_settings(app)) for app in self._apps]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="api", daemon=True)
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._socket_file = None if socket_path is None else (socket_path, socket_path.stat().st_ino)

    def start(self) -> None:
        """Returns when requests are answered. Raises what kept it from starting."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Ends what is still being answered and returns within STOP_SECONDS. Idempotent; safe before
        `start`."""
        for server in self._servers:
            server.should_exit = True
        loop = self._loop
        if loop is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it has just closed by itself
                loop.call_soon_threadsafe(self._end_answers)
            self._thread.join(STOP_SECONDS)
        for listener in self._listeners:
            listener.close()
        if self._socket_file is not None:
            path, inode = self._socket_file
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == inode:
                    path.unlink()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # handed to the thread that waits in start()
            self._failure = error
            if self._ready.is_set():
                raise
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        serving = [
            asyncio.ensure_future(server.serve(sockets=[listener]))
            for server, listener in zip(self._servers, self._listeners, strict=True)
        ]
        while not all(server.started for server in self._servers):
            if any(task.done() for task in serving):
                break
            await asyncio.sleep(0.005)
        else:
            self._ready.set()
        await asyncio.gather(*serving)

    def _end_answers(self) -> None:
        for app in self._apps:
            app.stopping.set()


class _Stoppable:
    """An application whose unfinished answers end when the server stops: with a reason where one can still be
    given, else as a broken-off stream."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.stopping = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_started = False

        async def sending(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        answering = asyncio.ensure_future(self._app(scope, receive, sending))
        stopping = asyncio.ensure_future(self.stopping.wait())
        try:
            await asyncio.wait({answering, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                await asyncio.wait({answering}, timeout=_GRACE_SECONDS)
            if answering.done():
                await answering
                return
            answering.cancel()
            await asyncio.wait({answering})
            if has_started:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            else:
                await error_response(RefusedError(503, NoDaemonError.code, _STOPPING))(scope, receive, send)
        finally:
            stopping.cancel()
            answering.cancel()


def _settings(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=30,
    )


def _tcp_error(host: str, port: int, error: OSError) -> AddressInUseError | UsageError:
    if error.errno == errno.EADDRINUSE:
        return AddressInUseError(
            f"{host}:{port} is in use by another program; choose another [server] port, or end that program"
        )
    if error.errno == errno.EACCES:
        return UsageError(f"[server] port = {port} may not be used by this account; choose one above 1023")
    return UsageError(f"[server] host = {host!r}, port = {port} cannot be used: {error.strerror}")
