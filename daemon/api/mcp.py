"""MCP: the tools for assistants, on standard input and output, answered by the running daemon.

What must stay true: nothing but the protocol is ever written to standard output, whatever a library or a
child process prints. Without a daemon the server stays up and says in each answer how to start one.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from ragd.daemon.api.threads import in_thread
from ragd.daemon.api.tools import INSTRUCTIONS, TOOLS
from ragd.daemon.backend import OWNER, Answer, Backend
from ragd.daemon.errors import NoDaemonError, UserError
from ragd.daemon.requests import parse_sync
from ragd.store.errors import FilterError
from ragd.store.types import Client

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolResult

Connect = Callable[[], Backend]
"""Gives the Backend of the running daemon; raises NoDaemonError."""


def claim_stdout() -> BinaryIO:
    """The real standard output for the protocol alone; from now on whatever is printed goes to standard
    error.

    To be called before anything else is imported or started that might print.
    """
    sys.stdout.flush()
    private = os.dup(1)  # children do not inherit it
    os.dup2(2, 1)
    return os.fdopen(private, "wb")


def serve_stdio(connect: Connect, version: str, *, wire: BinaryIO | None = None) -> None:
    """Serves until standard input ends. `wire` is what `claim_stdout` gave, if it was called before."""
    out = claim_stdout() if wire is None else wire
    import anyio
    from mcp.server.stdio import stdio_server

    async def run() -> None:
        server = create_server(connect, version)
        text = anyio.wrap_file(io.TextIOWrapper(out, encoding="utf-8", newline="\n"))
        async with stdio_server(stdout=text) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


def create_server(connect: Connect, version: str, client: Client = OWNER) -> Server[Any]:
    """The MCP server over a Backend; its transport is the caller's."""
    import mcp_types as types
    from mcp.server.lowlevel import Server

    tools = Tools(connect, client)

    async def list_tools(_context: object, _params: object) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    title=tool.title,
                    description=tool.description,
                    input_schema=tool.input_schema,
                    output_schema=tool.output_schema,
                    annotations=types.ToolAnnotations(
                        read_only_hint=tool.is_read_only, destructive_hint=False, open_world_hint=False
                    ),
                )
                for tool in TOOLS
            ]
        )

    async def call_tool(_context: object, params: types.CallToolRequestParams) -> CallToolResult:
        call = partial(tools.call, params.name, params.arguments or {})
        try:
            answer = await in_thread(call)
        except (UserError, FilterError) as error:
            return types.CallToolResult(content=[types.TextContent(type="text", text=str(error))], is_error=True)
        text = json.dumps(answer, ensure_ascii=False)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=answer)

    return Server("ragd", version=version, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)


class Tools:
    """What each tool asks the Backend. Thread-safe; finds the daemon anew when it was restarted."""

    def __init__(self, connect: Connect, client: Client) -> None:
        self._connect = connect
        self._client = client
        self._backend: Backend | None = None

    def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Raises UserError or FilterError."""
        asks: dict[str, Callable[[Backend], Answer]] = {
            "search": lambda backend: _with_citations(backend.search(self._client, arguments)),
            "get": lambda backend: _with_citation(backend.get(self._client, arguments)),
            "status": lambda backend: _status(backend, self._client, arguments),
            "sync": lambda backend: backend.sync(self._client, parse_sync(arguments)),
        }
        if name not in asks:
            raise FilterError("name", f"there is no tool {name!r}; known: {', '.join(asks)}")
        known = self._backend
        if known is not None:
            try:
                return asks[name](known)
            except NoDaemonError:
                self._backend = None
        self._backend = backend = self._connect()
        return asks[name](backend)


def citation(place: Mapping[str, Any]) -> str:
    """`path:start-end`; the page where the format has pages; the locator where it has neither lines."""
    path = place["path"]
    if place.get("page") is not None:
        return f"{path} (page {place['page']})"
    if place.get("start_line"):
        return f"{path}:{place['start_line']}-{place['end_line']}"
    return f"{path} ({place['locator']})" if place.get("locator") else str(path)


def _with_citation(place: Mapping[str, Any]) -> Answer:
    return {**place, "citation": citation(place)}


def _with_citations(answer: Mapping[str, Any]) -> Answer:
    return {**answer, "hits": [_with_citation(hit) for hit in answer["hits"]]}


def _status(backend: Backend, client: Client, arguments: Mapping[str, Any]) -> Answer:
    for key in arguments:
        raise FilterError(str(key), f"unknown parameter {str(key)!r}; status takes none")
    return backend.status(client)
