"""Who is asking over HTTP: bearer tokens, and which hosts and origins a request may name.

What must stay true: a token is compared in constant time against every known one, and never logged; a web
page, whatever name it resolved to this machine, gets nothing (DNS rebinding: the Host header is checked on
every route).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ragd.daemon.api.wire import RefusedError
from ragd.daemon.backend import OWNER
from ragd.daemon.errors import StoreUnavailableError, UsageError
from ragd.store.types import Client

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
_TOKEN_BYTES = 32
_LEAST_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class Credential:
    """A token and who holds it."""

    token: str
    client: Client


class Tokens:
    """Admits whoever sends one of the tokens."""

    def __init__(self, credentials: Sequence[Credential]) -> None:
        self._known = [(_digest(credential.token), credential.client) for credential in credentials]

    def admit(self, authorization: str | None) -> Client:
        """The client an `Authorization` header belongs to. Raises RefusedError (401)."""
        scheme, _, token = (authorization or "").partition(" ")
        offered = _digest(token.strip())
        found: Client | None = None
        for known, client in self._known:
            if hmac.compare_digest(known, offered):
                found = client
        if found is None or scheme.lower() != "bearer":
            raise RefusedError(401, "unauthorized", "a valid bearer token is needed (see [server] token_file)")
        return found


class SocketOwner:
    """Admits everybody: for the unix socket, which only its owner can open."""

    def admit(self, authorization: str | None) -> Client:  # noqa: ARG002 - one shape with Tokens
        return OWNER


def load_token(path: Path) -> str:
    """The token in a file; a missing file is created (0600) with a new one. Raises UsageError, or
    StoreUnavailableError when the disk is full."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except FileExistsError:
        return _read_token(path)
    except OSError as error:
        raise UsageError(
            f"[server] token_file: {path} cannot be created ({error.strerror}); name another folder"
        ) from error
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(token + "\n")
    except OSError as error:
        path.unlink(missing_ok=True)  # an empty one would be taken for somebody's mistake at the next start
        raise StoreUnavailableError(f"[server] token_file: {path} cannot be written ({error.strerror})") from error
    return token


def check_host(hosts: Sequence[str], allowed: Collection[str]) -> None:
    """Exactly one Host header that names an allowed host, with any port. Raises RefusedError (403)."""
    if len(hosts) != 1 or _without_port(hosts[0]) not in allowed:
        raise RefusedError(403, "forbidden", "the Host header does not name this machine")


def check_origin(origins: Sequence[str], allowed: Collection[str]) -> None:
    """No Origin header, or one page of an allowed host. Raises RefusedError (403)."""
    for origin in origins:
        try:
            parts = urlsplit(origin)
            named = _without_port(parts.netloc)
        except ValueError:
            named = ""
        if named not in allowed or parts.scheme not in ("http", "https"):
            raise RefusedError(403, "forbidden", "requests from that origin are not allowed")


def _without_port(host: str) -> str:
    name, colon, port = host.strip().lower().rpartition(":")
    if not colon or name.startswith("[") != name.endswith("]"):
        return host.strip().lower()
    return name if port.isdecimal() and port.isascii() else ""


def _read_token(path: Path) -> str:
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"[server] token_file: {path} cannot be read ({error})") from error
    if len(token) < _LEAST_CHARACTERS or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(
            f"[server] token_file: {path} holds no usable token (one line of at least {_LEAST_CHARACTERS} "
            "printable characters); remove it and a new one is made"
        )
    return token


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
