"""Warnings and notes from a provider's process, where Pulumi's own log does not work: engines show its stderr."""

import sys

from lakewright.lakekeeper.api.connection.versions import Server
from lakewright.terminal.escaping import escape_line


def warn(message: str) -> None:
    """Print a warning. The message contains no secret."""
    print(f"warning: {escape_line(message)}", file=sys.stderr, flush=True)


def warn_of_unenforced_grants(server: Server, subject: str) -> None:
    """Warn that a server enforces no grants."""
    if server.authz_backend == "allow-all":
        warn(f"{subject}: {server.endpoint} keeps it and enforces nothing, since its authorizer is `allow-all`")


def note(message: str) -> None:
    """Print a note about the run that a preview does not show. The message contains no secret."""
    print(f"note: {escape_line(message)}", file=sys.stderr, flush=True)
