"""The client against a real server on a real unix socket: same answers, same errors."""

from __future__ import annotations

import errno
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from api_kit import HIT, FakeBackend

from ragd.daemon.api.app import create_app
from ragd.daemon.api.auth import Credential, SocketOwner, Tokens
from ragd.daemon.api.client import SOCKET_NAME, HttpBackend, find_daemon
from ragd.daemon.api.server import STOP_SECONDS, ApiServer, bind_tcp, is_loopback
from ragd.daemon.api.sockets import answers, bind_unix
from ragd.daemon.backend import OWNER, Backend, Progress
from ragd.daemon.errors import (
    AddressInUseError,
    ModelStillLoadingError,
    ModelUnavailableError,
    NoDaemonError,
    NotFoundError,
    StateLockedError,
    StoreUnavailableError,
    UsageError,
    UserError,
)
from ragd.store.errors import FilterError

TOKEN = "t0ken-of-the-owner-t0ken"


@pytest.fixture
def socket_path(tmp_path: Path) -> Path:
    return tmp_path / "state" / SOCKET_NAME


@pytest.fixture
def server(backend: FakeBackend, socket_path: Path) -> Iterator[ApiServer]:
    made = ApiServer([(bind_unix(socket_path), create_app(backend, SocketOwner()))], socket_path=socket_path)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def client(server: ApiServer, socket_path: Path) -> Iterator[HttpBackend]:
    del server
    made = find_daemon(socket_path.parent)
    assert made is not None
    yield made
    made.close()


def test_every_method_asks_the_daemon(client: HttpBackend, backend: FakeBackend) -> None:
    asked: Backend = client  # it is one
    assert asked.status(OWNER)["state"] == "idle"
    assert asked.search(OWNER, {"query": "größer", "k": 3, "type": ("md",), "since": None})["hits"] == [HIT]
    assert asked.get(OWNER, {"path": "/home/me/ä b.md", "start": 3, "parent": False})["text"] == "text"
    assert asked.why(OWNER, "/a?b&c#d.md")["path"] == "/a?b&c#d.md"
    assert asked.preview(OWNER, {"path": "/a.md", "set": {"target_tokens": 5}})["path"] == "/a.md"
    assert asked.sync(OWNER, ["/a", "/b"])["files"] == {"seen": 1}
    assert asked.forget(OWNER, {"confirm": "notes"}) == {"forgotten": 1}
    assert asked.failures(OWNER) == {"failures": []}
    names = ["status", "search", "get", "why", "preview", "sync", "forget", "failures"]
    assert [name for name, _, _ in backend.calls] == names
    assert all(who == OWNER for _, who, _ in backend.calls)
    assert backend.calls[1][2].filters.type == ("md",)
    assert backend.calls[5][2] == ("/a", "/b")


def test_a_name_that_is_not_utf8_arrives_as_it_is_shown(client: HttpBackend, backend: FakeBackend) -> None:
    client.why(OWNER, "/caf\udce9.md")
    client.sync(OWNER, ["/caf\udce9.md"])
    assert backend.calls[0][2] == "/caf\\xe9.md"
    assert backend.calls[1][2] == ("/caf\\xe9.md",)


@pytest.mark.parametrize(
    "error",
    [
        FilterError("since", "no"),
        UsageError("no", problems=("one", "two")),
        NotFoundError("no"),
        StateLockedError("no"),
        ModelUnavailableError("no"),
        ModelStillLoadingError("no"),
        StoreUnavailableError("no"),
        UserError("no"),
    ],
)
def test_errors_come_back_as_they_were_raised(client: HttpBackend, backend: FakeBackend, error: Exception) -> None:
    backend.raises = error
    for ask in (
        lambda: client.status(OWNER),
        lambda: client.search(OWNER, {"query": "x"}),
        lambda: client.sync(OWNER, []),
        lambda: client.sync(OWNER, [], lambda _: None),
    ):
        with pytest.raises(type(error), match="no") as caught:
            ask()
        assert type(caught.value) is type(error)
        assert getattr(caught.value, "problems", ()) == getattr(error, "problems", ())
        assert getattr(caught.value, "field", None) == getattr(error, "field", None)


def test_parameters_are_refused_as_in_the_daemon(client: HttpBackend) -> None:
    with pytest.raises(FilterError) as caught:
        client.search(OWNER, {"query": "x", "limit": 3})
    assert caught.value.field == "limit"
    with pytest.raises(FilterError):
        client.get(OWNER, {})


def test_a_sync_reports_its_progress(client: HttpBackend, backend: FakeBackend) -> None:
    backend.progress = [{"done": 1, "total": 2}]
    backend.held = threading.Event()
    seen: list[object] = []

    def remember(progress: object) -> None:
        seen.append(progress)
        assert backend.held is not None
        backend.held.set()

    assert client.sync(OWNER, ["/a"], remember)["files"] == {"seen": 1}
    assert seen[0] == {"done": 1, "total": 2}


def test_a_sync_without_progress_is_waited_for(client: HttpBackend, backend: FakeBackend) -> None:
    backend.held = threading.Event()
    timer = threading.Timer(0.3, backend.held.set)
    timer.start()
    began = time.monotonic()
    client.sync(OWNER, [])
    assert time.monotonic() - began > 0.25
    assert client._http.timeout.read is None


def test_a_daemon_that_ends_is_named_with_the_cure(
    server: ApiServer,
    client: HttpBackend,
    backend: FakeBackend,
    socket_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend.held = threading.Event()
    failures: list[Exception] = []

    def ask(progress: Progress | None) -> None:
        try:
            client.sync(OWNER, [], progress)
        except NoDaemonError as error:
            failures.append(error)

    asking = [threading.Thread(target=ask, args=(progress,)) for progress in (None, lambda _: None)]
    for thread in asking:
        thread.start()
    while sum(name == "sync" for name, _, _ in backend.calls) < 2:
        time.sleep(0.01)
    with caplog.at_level("WARNING"):
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < STOP_SECONDS
    for thread in asking:
        thread.join(10)
    backend.held.set()
    assert ["ragd run" in str(error) for error in failures] == [True, True]
    assert caplog.records == []
    with pytest.raises(NoDaemonError, match="ragd run"):
        client.status(OWNER)
    assert find_daemon(socket_path.parent) is None
    assert not socket_path.exists()


# --- the unix socket


def test_the_socket_is_private(server: ApiServer, socket_path: Path) -> None:
    del server
    assert stat.S_IMODE(socket_path.stat().st_mode) == 0o600
    assert stat.S_IMODE(socket_path.parent.stat().st_mode) == 0o700


def test_a_stale_socket_is_replaced_and_a_living_one_never(socket_path: Path) -> None:
    bind_unix(socket_path).close()  # what a kill leaves behind
    assert socket_path.exists()
    assert find_daemon(socket_path) is None
    living = bind_unix(socket_path)
    with pytest.raises(AddressInUseError, match="socket"):
        bind_unix(socket_path)
    assert answers(socket_path)
    living.close()
    other = socket_path.with_name("file")
    other.write_text("precious")
    with pytest.raises(UsageError, match="not a socket"):
        bind_unix(other)
    assert other.read_text() == "precious"


def test_a_long_path_is_no_obstacle(tmp_path: Path, backend: FakeBackend) -> None:
    path = tmp_path / ("long" * 20) / ("folder" * 20) / SOCKET_NAME
    served = ApiServer([(bind_unix(path), create_app(backend, SocketOwner()))], socket_path=path)
    served.start()
    try:
        found = find_daemon(path)
        assert found is not None
        assert found.status(OWNER)["state"] == "idle"
        found.close()
    finally:
        served.stop()
    assert not path.exists()


# --- the port (G11)


def test_fault_g11_a_port_in_use_is_named() -> None:
    with bind_tcp("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressInUseError) as caught:
            bind_tcp("127.0.0.1", port)
    assert caught.value.exit_code == 8
    for part in ("127.0.0.1", str(port), "[server] port"):
        assert part in str(caught.value)


def test_fault_g11_a_quick_restart_works(backend: FakeBackend) -> None:
    """Connections of the old server linger (TIME_WAIT) and must not block the port."""
    port = 0
    for _ in range(3):
        listener = bind_tcp("127.0.0.1", port)
        port = listener.getsockname()[1]
        served = ApiServer([(listener, create_app(backend, Tokens([Credential(TOKEN, OWNER)])))])
        served.start()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
            assert http.get("/healthz").json() == {"status": "ok"}
            served.stop()


def test_port_and_socket_are_served_side_by_side(backend: FakeBackend, socket_path: Path) -> None:
    listener = bind_tcp("127.0.0.1", 0)
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    served = ApiServer(
        [
            (listener, create_app(backend, Tokens([Credential(TOKEN, OWNER)]))),
            (bind_unix(socket_path), create_app(backend, SocketOwner())),
        ],
        socket_path=socket_path,
    )
    began = time.monotonic()
    served.start()
    assert time.monotonic() - began < 2
    with httpx.Client(base_url=base, trust_env=False) as http:
        assert http.get("/v1/status").status_code == 401
        good = http.get("/v1/status", headers={"Authorization": f"Bearer {TOKEN}"})
        assert good.json()["state"] == "idle"
        assert "server" not in good.headers
        assert http.get("/healthz", headers={"Host": "evil.example"}).status_code == 403
    found = find_daemon(socket_path)
    assert found is not None
    assert found.status(OWNER)["state"] == "idle"
    found.close()
    served.stop()
    served.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(listener_address(base), timeout=2)


def listener_address(base: str) -> tuple[str, int]:
    return "127.0.0.1", int(base.rpartition(":")[2])


def test_nothing_listens_beyond_loopback_by_itself() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.invalid"):
        with pytest.raises(UsageError, match=r"\[server\] host"):
            bind_tcp(host, 0)
    bind_tcp("0.0.0.0", 0, beyond_loopback=True).close()
    assert [is_loopback(host) for host in ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost")] == [True] * 5
    assert not is_loopback("localhost.example")


def test_an_address_that_is_not_here_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"\[server\] host"):
        bind_tcp("192.0.2.1", 0, beyond_loopback=True)

    def refuse(_self: socket.socket, _address: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refuse)
    with pytest.raises(UsageError, match=r"\[server\] port"):
        bind_tcp("127.0.0.1", 80)


def test_a_server_that_cannot_start_says_why(backend: FakeBackend) -> None:
    listener = bind_tcp("127.0.0.1", 0)
    listener.close()
    served = ApiServer([(listener, create_app(backend, SocketOwner()))])
    with pytest.raises(OSError, match="Bad file descriptor"):
        served.start()
    served.stop()
