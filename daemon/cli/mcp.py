"""`ragd mcp`: the daemon for assistants that speak MCP on standard input and output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ragd.daemon.cli import connect
from ragd.daemon.cli.invocation import Invocation, common_options

if TYPE_CHECKING:
    from ragd.daemon.backend import Backend


@click.command("mcp", short_help="Serve MCP on standard input and output.")
@common_options
@click.pass_obj
def command(invocation: Invocation) -> None:
    """Serve MCP on standard input and output, by asking the running daemon.

    Stays up without a daemon and says then how to start one. For the settings of an assistant, not for a
    terminal.
    """
    from ragd.daemon.api.mcp import claim_stdout, serve_stdio

    wire = claim_stdout()  # before anything is imported that could print

    def running() -> Backend:
        # read anew each time: a wrong configuration is an answer too, and can be mended meanwhile
        return connect.running(invocation.config())

    from importlib.metadata import version

    serve_stdio(running, version("ragd"), wire=wire)
