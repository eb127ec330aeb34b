"""Warnings and notes from a provider's process, where Pulumi's own log does not work: engines show its stderr."""

import sys

from lakewright.lakekeeper.api.connection.versions import Server


def warn(message: str) -> None:
    """Tell something that is no error. Never a secret."""
    print(f"warning: {message}", file=sys.stderr, flush=True)


def unenforced(server: Server, what: str) -> None:
    """Tell that a server lets everybody do everything, whatever is granted."""
    if server.authz_backend == "allow-all":
        warn(f"{what}: {server.endpoint} keeps it and enforces nothing, since its authorizer is `allow-all`")


def tell(message: str) -> None:
    """Tell what is about to happen, where a preview alone would not show it. Never a secret."""
    print(f"note: {message}", file=sys.stderr, flush=True)
