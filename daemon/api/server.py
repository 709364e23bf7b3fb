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
import os
import socket
import sys
import threading
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from ragd.daemon.errors import AddressInUseError, UsageError

STOP_SECONDS = 2.0
_BACKLOG = 128


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

    def __init__(self, served: list[tuple[socket.socket, ASGIApp]]) -> None:
        self._served = served
        self._servers = [uvicorn.Server(_settings(app)) for _, app in served]
        self._thread = threading.Thread(target=self._run, name="api", daemon=True)
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._unix_files = [
            (Path(name), os.stat(name).st_ino)
            for listener, _ in served
            if listener.family == socket.AF_UNIX and (name := _unix_path(listener)) is not None
        ]

    def start(self) -> None:
        """Returns when requests are answered. Raises what kept it from starting."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Ends open connections and returns within STOP_SECONDS. Idempotent; safe before `start`."""
        for server in self._servers:
            server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)
        for listener, _ in self._served:
            listener.close()
        for path, inode in self._unix_files:
            with contextlib.suppress(OSError):
                if os.stat(path).st_ino == inode:
                    path.unlink()
        self._unix_files = []

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
        serving = [
            asyncio.ensure_future(server.serve(sockets=[listener]))
            for server, (listener, _) in zip(self._servers, self._served, strict=True)
        ]
        while not all(server.started for server in self._servers):
            if any(task.done() for task in serving):
                break
            await asyncio.sleep(0.005)
        else:
            self._ready.set()
        await asyncio.gather(*serving)


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


def _unix_path(listener: socket.socket) -> str | None:
    name = listener.getsockname()
    return name if isinstance(name, str) and name else None


def _tcp_error(host: str, port: int, error: OSError) -> AddressInUseError | UsageError:
    if error.errno == errno.EADDRINUSE:
        return AddressInUseError(
            f"{host}:{port} is in use by another program; choose another [server] port, or end that program"
        )
    if error.errno == errno.EACCES:
        return UsageError(f"[server] port = {port} may not be used by this account; choose one above 1023")
    return UsageError(f"[server] host = {host!r}, port = {port} cannot be used: {error.strerror}")
