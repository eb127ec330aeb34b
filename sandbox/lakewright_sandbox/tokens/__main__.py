"""Run the identity provider in the foreground: `python -m lakewright_sandbox.tokens`."""

from __future__ import annotations

import argparse
from pathlib import Path

import uvicorn

from lakewright_sandbox.tokens.app import IdentityProvider
from lakewright_sandbox.tokens.clients import load_or_create
from lakewright_sandbox.tokens.keys import SigningKey


def main() -> None:
    """Serve until SIGTERM or SIGINT; print warnings and errors alone."""
    parser = argparse.ArgumentParser(prog="lakewright_sandbox.tokens", description="A sandbox identity provider")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument(
        "--clients", type=Path, required=True, help="folder of the clients' secrets, created if missing"
    )
    parser.add_argument("--lifetime-seconds", type=float, default=3600, help="lifetime of issued tokens")
    arguments = parser.parse_args()
    key = SigningKey.load_or_create(arguments.clients / "signing-key.pem")
    provider = IdentityProvider(load_or_create(arguments.clients), key, arguments.lifetime_seconds)
    uvicorn.run(
        provider.app(),
        host="127.0.0.1",
        port=arguments.port,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=3,
    )


if __name__ == "__main__":
    main()
