"""The HTTP API without a socket: routes, errors, and who is turned away."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from api_kit import HIT, FakeBackend
from starlette.testclient import TestClient

from ragd.daemon.api.app import MAX_BODY_BYTES, create_app
from ragd.daemon.api.auth import Credential, SocketOwner, Tokens, load_token
from ragd.daemon.backend import OWNER
from ragd.daemon.errors import (
    ModelUnavailableError,
    NotFoundError,
    StateLockedError,
    StoreUnavailableError,
    UsageError,
    UserError,
)
from ragd.store.errors import FilterError, ModelLoadingError, PlaceNotFoundError, StoreError
from ragd.store.types import Client

TOKEN = "t0ken-of-the-owner-t0ken"
GUEST_TOKEN = "t0ken-of-the-guest-t0ken"
GUEST = Client("guest", frozenset({"team"}))
AUTH = {"Authorization": f"Bearer {TOKEN}"}
ROUTES = [
    ("GET", "/healthz", None),
    ("GET", "/v1/status", None),
    ("POST", "/v1/search", {"query": "x"}),
    ("GET", "/v1/get?path=/a.md", None),
    ("GET", "/v1/why?path=/a.md", None),
    ("POST", "/v1/sync", {}),
    ("POST", "/v1/preview", {"path": "/a.md"}),
    ("POST", "/v1/forget", {"path": "/a.md"}),
    ("GET", "/v1/failures", None),
]


@pytest.fixture
def http(backend: FakeBackend) -> Iterator[TestClient]:
    tokens = Tokens([Credential(TOKEN, OWNER), Credential(GUEST_TOKEN, GUEST)])
    with TestClient(create_app(backend, tokens), base_url="http://127.0.0.1:8420") as client:
        yield client


def send(http: TestClient, method: str, path: str, body: Any = None, **headers: str) -> Any:
    return http.request(method, path, json=body, headers={**AUTH, **headers})


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_every_route_answers_json(http: TestClient, backend: FakeBackend, method: str, path: str, body: Any) -> None:
    answer = send(http, method, path, body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert isinstance(answer.json(), dict)
    assert len(backend.calls) == 1
    assert answer.headers["cache-control"] == "no-store"


def test_answers_are_those_of_the_backend(http: TestClient, backend: FakeBackend) -> None:
    answer = send(http, "POST", "/v1/search", {"query": "größer", "k": 3, "type": ["md"]}).json()
    assert answer["hits"] == [HIT]
    assert answer["query"] == "größer"
    name, client, request = backend.calls[0]
    assert (name, client, request.k, request.filters.type) == ("search", OWNER, 3, ("md",))
    send(http, "GET", "/v1/get?path=/a.md&start=3&end=5")
    assert backend.calls[1][2].readings[0].start == 3
    send(http, "POST", "/v1/sync", {"paths": ["/a", "/b"]})
    assert backend.calls[2][2] == ("/a", "/b")


# --- fault G6: DNS rebinding

G6 = [
    ({"Host": "evil.example:8420"}, 403),
    ({"Host": "evil.example"}, 403),
    ({"Host": "127.0.0.1.evil.example"}, 403),
    ({"Host": "localhost.evil.example:80"}, 403),
    ({"Host": "127.0.0.1@evil.example"}, 403),
    ({"Host": ""}, 403),
    ({"Host": "[::1"}, 403),
    ({"Host": "localhost:x"}, 403),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": ""}, 403),
    ({"Origin": "file://"}, 403),
    ({"Origin": "http://localhost.evil.example"}, 403),
    ({}, 200),
    ({"Host": "localhost:8420"}, 200),
    ({"Host": "LOCALHOST"}, 200),
    ({"Host": "[::1]:8420"}, 200),
    ({"Host": "127.0.0.1:1"}, 200),
    ({"Origin": "http://localhost:8420"}, 200),
    ({"Origin": "http://127.0.0.1:8420"}, 200),
    ({"Origin": "http://[::1]:8420"}, 200),
]


@pytest.mark.parametrize(("headers", "status"), G6)
@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_fault_g6_host_and_origin_are_checked_on_every_route(
    http: TestClient,
    backend: FakeBackend,
    method: str,
    path: str,
    body: Any,
    headers: dict[str, str],
    status: int,
) -> None:
    answer = send(http, method, path, body, **headers)
    assert answer.status_code == status
    assert len(backend.calls) == (status == 200)
    if status == 403:
        assert answer.json()["error"]["code"] == "forbidden"


def test_fault_g6_the_checks_hold_over_the_socket_and_for_unknown_paths(backend: FakeBackend) -> None:
    with TestClient(create_app(backend, SocketOwner()), base_url="http://localhost") as http:
        assert http.get("/v1/status").status_code == 200
        assert http.get("/v1/status", headers={"Host": "evil.example"}).status_code == 403
        assert http.get("/nowhere", headers={"Host": "evil.example"}).status_code == 403
        assert http.get("/nowhere").status_code == 404


# --- fault G7: CORS


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_fault_g7_no_cors_and_no_simple_posts(
    http: TestClient, backend: FakeBackend, method: str, path: str, body: Any
) -> None:
    for origin in ("https://evil.example", "http://localhost:8420"):
        preflight = http.options(path, headers={"Origin": origin, "Access-Control-Request-Method": method, **AUTH})
        assert preflight.status_code in (403, 405)
        answers = [preflight, send(http, method, path, body, Origin=origin)]
        assert not [key for answer in answers for key in answer.headers if key.startswith("access-control")]
    if method == "POST":
        backend.calls.clear()
        for kind in (
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "",
            "application/jsonx",
        ):
            answer = http.post(path, content=json.dumps(body), headers={**AUTH, "Content-Type": kind})
            assert answer.status_code == 415
        assert backend.calls == []


# --- tokens


@pytest.mark.parametrize(("method", "path", "body"), [*ROUTES, ("GET", "/v1/unknown", None), ("GET", "/", None)])
def test_without_a_token_only_the_health(
    http: TestClient, backend: FakeBackend, method: str, path: str, body: Any
) -> None:
    wrong = [
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
    ]
    for header in [None, *wrong]:
        headers = {} if header is None else {"Authorization": header}
        answer = http.request(method, path, json=body, headers=headers)
        if path == "/healthz":
            assert answer.json() == {"status": "ok"}
            continue
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["code"] == "unauthorized"
    if path != "/healthz":
        assert backend.calls == []


def test_health_says_ok_or_degraded_and_nothing_else(http: TestClient, backend: FakeBackend) -> None:
    for state, expected in (
        ("idle", "ok"),
        ("indexing", "ok"),
        ("rebuilding", "ok"),
        ("degraded", "degraded"),
    ):
        backend.state = state
        assert http.get("/healthz").json() == {"status": expected}


def test_a_token_stands_for_its_client(http: TestClient, backend: FakeBackend) -> None:
    guest = {"Authorization": f"bearer {GUEST_TOKEN}"}
    assert http.get("/v1/status", headers=guest).status_code == 200
    assert backend.calls[0][1] == GUEST
    refused = http.post("/v1/forget", json={"path": "/a"}, headers=guest)
    assert refused.status_code == 403
    assert len(backend.calls) == 1


def test_a_token_file_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = load_token(path)
    assert len(token) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_token(path) == token
    assert path.read_text().strip() == token
    for bad in ("", "\n", "short", "two words are no token at all", "ümlaut-ümlaut-ümlaut"):
        path.write_text(bad)
        with pytest.raises(UsageError, match="token_file"):
            load_token(path)
    with pytest.raises(UsageError, match="token_file"):
        load_token(tmp_path / "missing" / "token")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_token_that_cannot_be_written_leaves_no_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def on_a_full_disk(descriptor: int, *_: object, **__: object) -> IO[str]:
        os.close(descriptor)
        return open("/dev/full", "w")

    monkeypatch.setattr("ragd.daemon.api.auth.os.fdopen", on_a_full_disk)
    with pytest.raises(StoreUnavailableError, match="No space left"):
        load_token(tmp_path / "token")
    assert not (tmp_path / "token").exists()


# --- errors


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (FilterError("type", "no"), 400, "invalid"),
        (UsageError("no", problems=("one", "two")), 400, "usage"),
        (NotFoundError("no"), 404, "not_found"),
        (PlaceNotFoundError("no"), 404, "not_found"),
        (StateLockedError("no"), 409, "locked"),
        (ModelUnavailableError("no"), 503, "model"),
        (ModelLoadingError("no"), 503, "model_loading"),
        (StoreUnavailableError("no"), 503, "store"),
        (StoreError("no"), 503, "store"),
        (UserError("no"), 500, "error"),
    ],
)
def test_errors_have_one_shape(
    http: TestClient, backend: FakeBackend, error: Exception, status: int, code: str
) -> None:
    backend.raises = error
    answer = send(http, "POST", "/v1/search", {"query": "x"})
    assert answer.status_code == status
    body = answer.json()["error"]
    assert (body["code"], body["message"]) == (code, "no")
    assert body["field"] == getattr(error, "field", None)
    assert ("retry-after" in answer.headers) == (status == 503)
    assert body.get("problems", []) == list(getattr(error, "problems", ()))


def test_an_unforeseen_error_tells_nothing_and_is_logged(
    http: TestClient, backend: FakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    backend.raises = RuntimeError("its innards")
    answer = send(http, "POST", "/v1/search", {"query": "a private question"})
    assert answer.status_code == 500
    assert "innards" not in answer.text
    assert "its innards" in caplog.text
    assert "private question" not in caplog.text


@pytest.mark.parametrize("content", [b"{", b"[]", b'"x"', b"null", b"\xff", b"[" * 200_000])
def test_a_body_that_is_no_object_is_refused(http: TestClient, content: bytes) -> None:
    answer = http.post("/v1/search", content=content, headers={**AUTH, "Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "body"


def test_fault_g3_unknown_keys_name_their_field(http: TestClient, backend: FakeBackend) -> None:
    for method, path, body, field in (
        ("POST", "/v1/search", {"query": "x", "filter": {}}, "filter"),
        ("POST", "/v1/sync", {"path": "x"}, "path"),
        ("GET", "/v1/get?path=a&lines=3", None, "lines"),
        ("GET", "/v1/get?path=a&path=b", None, "path"),
        ("GET", "/v1/why", None, "path"),
        ("POST", "/v1/preview", {"path": "a", "sett": {}}, "sett"),
    ):
        answer = send(http, method, path, body)
        assert answer.status_code == 400
        assert answer.json()["error"]["field"] == field
    assert backend.calls == []
    for value in ('it\'s 100% "odd"', "%", "'; DROP TABLE chunk; --"):
        assert send(http, "POST", "/v1/search", {"query": "x", "type": [value]}).status_code == 200


def test_bodies_are_limited(http: TestClient, backend: FakeBackend) -> None:
    answer = send(http, "POST", "/v1/search", {"query": "x" * MAX_BODY_BYTES})
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "too_large"
    assert backend.calls == []


def test_unknown_paths_and_methods(http: TestClient) -> None:
    for method, path, status in (
        ("GET", "/v1/unknown", 404),
        ("POST", "/v1/context", 404),
        ("GET", "/v1/status/", 404),
        ("GET", "/v1/search", 405),
        ("DELETE", "/v1/status", 405),
    ):
        answer = send(http, method, path)
        assert answer.status_code == status
        assert answer.json()["error"]["code"] in ("not_found", "method_not_allowed")


# --- long work


def test_waiting_syncs_never_starve_a_status_or_a_search(http: TestClient, backend: FakeBackend) -> None:
    backend.held = threading.Event()
    syncs = [threading.Thread(target=send, args=(http, "POST", "/v1/sync", {})) for _ in range(20)]
    for sync in syncs:
        sync.start()
    assert backend.entered.wait(10)
    try:
        assert send(http, "GET", "/v1/status").status_code == 200
        assert send(http, "POST", "/v1/search", {"query": "x"}).status_code == 200
        assert http.get("/healthz").status_code == 200
    finally:
        backend.held.set()
        for sync in syncs:
            sync.join(20)
    assert sum(name == "sync" for name, _, _ in backend.calls) == 20


def test_a_sync_can_be_followed(http: TestClient, backend: FakeBackend) -> None:
    backend.progress = [{"done": 1, "total": 2}]
    backend.held = threading.Event()
    timer = threading.Timer(0.5, backend.held.set)
    timer.start()
    answer = send(http, "POST", "/v1/sync", {}, Accept="application/x-ndjson")
    timer.join()
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert lines[0] == {"progress": {"done": 1, "total": 2}}
    assert lines[-1]["result"]["files"] == {"seen": 1}
    backend.held = None
    backend.raises = StateLockedError("held elsewhere")
    answer = send(http, "POST", "/v1/sync", {}, Accept="application/x-ndjson")
    assert json.loads(answer.text.splitlines()[-1])["error"]["code"] == "locked"
