"""A Backend that asks the running daemon over its unix socket.

What must stay true: it gives the same answers and raises the same errors as the Backend inside the daemon. It
never gives up on a long sync: only a connection that breaks ends it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from ragd.daemon.api.sockets import answers, socket_address
from ragd.daemon.api.wire import PROGRESS_TYPE, error_from
from ragd.daemon.backend import Answer, Progress
from ragd.daemon.errors import NoDaemonError, UserError
from ragd.store.places import shown_text
from ragd.store.types import Client

SOCKET_NAME = "ragd.sock"
_CONNECT_SECONDS = 5.0


def find_daemon(place: Path) -> HttpBackend | None:
    """The daemon that answers on a socket, or on the usual one in a state folder; None when there is none."""
    path = place / SOCKET_NAME if place.is_dir() else place
    return HttpBackend(path) if answers(path) else None


class HttpBackend:
    """Thread-safe. The `client` of its methods is not sent: through the socket everybody is the owner."""

    def __init__(self, socket_path: Path) -> None:
        self._path = socket_path
        self._held = contextlib.ExitStack()
        address = self._held.enter_context(socket_address(socket_path))
        self._http = self._held.enter_context(
            httpx.Client(
                transport=httpx.HTTPTransport(uds=address),
                base_url="http://localhost",
                timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS),
                trust_env=False,
            )
        )

    def status(self, client: Client) -> Answer:
        del client
        return self._ask("GET", "/v1/status")

    def search(self, client: Client, params: Mapping[str, Any]) -> Answer:
        del client
        return self._ask("POST", "/v1/search", params)

    def get(self, client: Client, params: Mapping[str, Any]) -> Answer:
        del client
        return self._ask("GET", "/v1/get", params)

    def why(self, client: Client, path: str) -> Answer:
        del client
        return self._ask("GET", "/v1/why", {"path": path})

    def preview(self, client: Client, params: Mapping[str, Any]) -> Answer:
        del client
        return self._ask("POST", "/v1/preview", params)

    def sync(self, client: Client, paths: Sequence[str], progress: Progress | None = None) -> Answer:
        del client
        params = {"paths": [shown_text(path) for path in paths]}
        if progress is None:
            return self._ask("POST", "/v1/sync", params)
        with (
            self._reaching(),
            self._http.stream("POST", "/v1/sync", json=params, headers={"Accept": PROGRESS_TYPE}) as response,
        ):
            if response.status_code != 200:
                response.read()
                raise error_from(response.status_code, _decoded(response.text))
            for line in response.iter_lines():
                message = _decoded(line)
                if "result" in message:
                    result: Answer = message["result"]
                    return result
                if "error" in message:
                    raise error_from(500, message)
                if message.get("progress"):
                    progress(message["progress"])
        raise NoDaemonError("the daemon ended before the sync did; start it again with `ragd run`")

    def forget(self, client: Client, params: Mapping[str, Any]) -> Answer:
        del client
        return self._ask("POST", "/v1/forget", params)

    def failures(self, client: Client) -> Answer:
        del client
        return self._ask("GET", "/v1/failures")

    def close(self) -> None:
        """Idempotent."""
        self._held.close()

    def _ask(self, method: str, path: str, params: Mapping[str, Any] | None = None) -> Answer:
        given = {
            key: shown_text(value) if isinstance(value, str) else value
            for key, value in (params or {}).items()
            if value is not None
        }
        with self._reaching():
            if method == "GET":
                response = self._http.request(method, path, params=given)
            else:
                response = self._http.request(method, path, json=given)
        answer = _decoded(response.text)
        if response.status_code != 200:
            raise error_from(response.status_code, answer)
        return answer

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        # Asked first, since the library leaves a socket open that could not be connected.
        if not answers(self._path):
            raise NoDaemonError(f"no daemon answers on {self._path}; start it with `ragd run`")
        try:
            yield
        except httpx.TransportError as error:
            raise NoDaemonError(
                f"the daemon on {self._path} went away ({error}); start it again with `ragd run`"
            ) from error


def _decoded(text: str) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise UserError("the daemon's answer is not JSON; is another program using its socket?") from error
    if not isinstance(answer, dict):
        raise UserError("the daemon's answer is not a JSON object; is another program using its socket?")
    return answer
