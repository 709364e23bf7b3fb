"""The HTTP API as one ASGI callable, tested without a socket.

What must stay true: every request passes the checks of Host and Origin and then, on all but /healthz, of who
asks, before anything is done; no answer carries a CORS header; a slow sync never keeps a status or a search
waiting; no query and no text is ever logged.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ragd.daemon.api.auth import LOOPBACK_HOSTS, check_host, check_origin
from ragd.daemon.api.threads import in_thread
from ragd.daemon.api.wire import PROGRESS_TYPE, RefusedError, answer_to, body
from ragd.daemon.backend import OWNER, Answer, Backend
from ragd.daemon.requests import parse_sync, parse_why
from ragd.store.errors import FilterError
from ragd.store.types import Client

MAX_BODY_BYTES = 1_000_000
_PROGRESS_SECONDS = 0.1
_HEARTBEAT_SECONDS = 10.0
_OPEN_PATHS = frozenset({"/healthz"})

# How many calls of each kind may be in a thread at once. They do not share, so that none starves another.
_THREADS = {"status": 4, "search": 8, "preview": 2, "sync": 8}

Endpoint = Callable[[Request], Awaitable[Response]]

log = logging.getLogger(__name__)


class Admission(Protocol):
    """Decides who asks: `Tokens` on a port, `SocketOwner` on the unix socket."""

    def admit(self, authorization: str | None) -> Client:
        """Raises RefusedError (401)."""


def create_app(backend: Backend, admission: Admission, *, hosts: Collection[str] = LOOPBACK_HOSTS) -> ASGIApp:
    """`hosts`: the names a Host or Origin header may hold, lower case, without port."""
    calls = _Calls(backend)
    endpoints: list[tuple[str, str, Endpoint]] = [
        ("GET", "/healthz", calls.healthz),
        ("GET", "/v1/status", calls.status),
        ("POST", "/v1/search", calls.search),
        ("GET", "/v1/get", calls.get),
        ("GET", "/v1/why", calls.why),
        ("POST", "/v1/sync", calls.sync),
        ("POST", "/v1/preview", calls.preview),
        ("POST", "/v1/forget", calls.forget),
        ("GET", "/v1/failures", calls.failures),
    ]
    app = Starlette(
        routes=[Route(path, _answering(endpoint), methods=[method]) for method, path, endpoint in endpoints],
        exception_handlers={HTTPException: _http_error},
    )
    app.router.redirect_slashes = False
    return _Guard(app, admission, frozenset(hosts))


class _Guard:
    """Host, Origin and token, in this order, in front of everything."""

    def __init__(self, app: ASGIApp, admission: Admission, hosts: frozenset[str]) -> None:
        self._app = app
        self._admission = admission
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            check_host(_header_values(scope, b"host"), self._hosts)
            check_origin(_header_values(scope, b"origin"), self._hosts)
            if scope["path"] not in _OPEN_PATHS:
                authorization = _header_values(scope, b"authorization")
                scope["ragd.client"] = self._admission.admit(authorization[0] if authorization else None)
        except RefusedError as refusal:
            await error_response(refusal)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class _Calls:
    """One method a route: reads the request, asks the backend on a thread, writes the answer."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._places: dict[str, asyncio.Semaphore] = {}

    async def healthz(self, request: Request) -> Response:
        del request
        answer = await self._ask("status", self._backend.status, OWNER)
        return _json({"status": "degraded" if answer.get("state") == "degraded" else "ok"})

    async def status(self, request: Request) -> Response:
        _read_query(request)
        return _json(await self._ask("status", self._backend.status, _client(request)))

    async def failures(self, request: Request) -> Response:
        _read_query(request)
        return _json(await self._ask("status", self._backend.failures, _client(request)))

    async def why(self, request: Request) -> Response:
        path = parse_why(_read_query(request))
        return _json(await self._ask("status", self._backend.why, _client(request), path))

    async def search(self, request: Request) -> Response:
        params = await _read_body(request)
        return _json(await self._ask("search", self._backend.search, _client(request), params))

    async def get(self, request: Request) -> Response:
        params = _read_query(request)
        return _json(await self._ask("search", self._backend.get, _client(request), params))

    async def preview(self, request: Request) -> Response:
        params = await _read_body(request)
        return _json(await self._ask("preview", self._backend.preview, _client(request), params))

    async def forget(self, request: Request) -> Response:
        params = await _read_body(request)
        client = _client(request)
        if client.labels is not None:
            raise RefusedError(403, "forbidden", "a client with labels cannot forget files")
        return _json(await self._ask("sync", self._backend.forget, client, params))

    async def sync(self, request: Request) -> Response:
        paths = parse_sync(await _read_body(request))
        client = _client(request)
        if PROGRESS_TYPE not in request.headers.get("accept", ""):
            return _json(await self._ask("sync", self._backend.sync, client, paths))
        latest: list[Mapping[str, Any]] = []

        def remember(progress: Mapping[str, Any]) -> None:
            latest[:] = [dict(progress)]

        asked = self._ask("sync", partial(self._backend.sync, progress=remember), client, paths)
        return StreamingResponse(_progress_lines(asked, latest), media_type=PROGRESS_TYPE, headers=_HEADERS)

    async def _ask(self, kind: str, call: Callable[..., Answer], *arguments: object) -> Answer:
        """The backend's answer, from a thread; a caller that went away is not waited for."""
        places = self._places.get(kind)
        if places is None:
            places = self._places[kind] = asyncio.Semaphore(_THREADS[kind])
        return await in_thread(partial(call, *arguments), places)


async def _progress_lines(asked: Awaitable[Answer], latest: list[Mapping[str, Any]]) -> AsyncIterator[bytes]:
    """Lines of JSON: {"progress": ...} now and then, at last {"result": ...} or {"error": ...}."""
    task = asyncio.ensure_future(asked)
    sent: Mapping[str, Any] | None = None
    quiet_seconds = 0.0
    try:
        while not (await asyncio.wait({task}, timeout=_PROGRESS_SECONDS))[0]:
            quiet_seconds += _PROGRESS_SECONDS
            if latest and latest[0] is not sent:
                sent = latest[0]
            elif quiet_seconds < _HEARTBEAT_SECONDS:
                continue
            quiet_seconds = 0.0
            yield _line({"progress": sent or {}})
        error = task.exception()
        if error is None:
            yield _line({"result": task.result()})
        elif isinstance(error, Exception):
            _log_unforeseen(error)
            yield _line(answer_to(error)[2])
        else:
            raise error
    finally:
        task.cancel()


# --- reading and writing ------------------------------------------------------------------------------

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def _client(request: Request) -> Client:
    client = request.scope["ragd.client"]
    assert isinstance(client, Client)
    return client


def _header_values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _read_query(request: Request) -> dict[str, str]:
    """The query parameters, each given once."""
    params: dict[str, str] = {}
    for key, value in request.query_params.multi_items():
        if key in params:
            raise FilterError(key, f"{key} is given more than once")
        params[key] = value
    return params


async def _read_body(request: Request) -> dict[str, Any]:
    """The JSON object in the body. A form or plain text, which a web page could send unasked, is refused."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, "unsupported_media_type", "the body must be JSON (Content-Type: application/json)")
    raw = bytearray()
    async for piece in request.stream():
        raw += piece
        if len(raw) > MAX_BODY_BYTES:
            raise RefusedError(413, "too_large", f"the body is larger than {MAX_BODY_BYTES} bytes")
    try:
        params = json.loads(bytes(raw)) if raw.strip() else {}
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "invalid", f"the body is not JSON: {error}", field="body") from error
    if not isinstance(params, dict):
        raise RefusedError(400, "invalid", "the body must be a JSON object", field="body")
    return params


def _encoded(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


def _line(answer: Mapping[str, Any]) -> bytes:
    return _encoded(answer) + b"\n"


def _json(answer: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(_encoded(answer), status, headers={**_HEADERS, **(headers or {})}, media_type="application/json")


def _log_unforeseen(error: Exception) -> None:
    if answer_to(error)[0] == 500:
        log.error("a request failed", exc_info=error)


def error_response(error: Exception) -> Response:
    """The answer to what was raised."""
    status, headers, answer = answer_to(error)
    return _json(answer, status, headers)


def _answering(endpoint: Endpoint) -> Endpoint:
    """The endpoint with every error as an answer."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except HTTPException:
            raise
        except Exception as error:  # noqa: BLE001 - this is where errors become answers; unforeseen ones are logged
            _log_unforeseen(error)
            return error_response(error)

    return answered


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "error")
    message = f"there is no {request.url.path}" if error.status_code == 404 else error.detail
    return _json(body(code, message), error.status_code, error.headers)
