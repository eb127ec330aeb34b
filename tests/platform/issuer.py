"""The sandbox's identity provider with TLS, at one address: `python -m tests.platform.issuer ADDRESS CLIENTS TLS`."""

from __future__ import annotations

import sys
from pathlib import Path

import uvicorn
from lakewright_sandbox.tokens.app import IdentityProvider
from lakewright_sandbox.tokens.clients import load_or_create
from lakewright_sandbox.tokens.keys import SigningKey


def main() -> None:
    """Serve until SIGTERM. Secrets of clients are read again for each token, so they can be rotated."""
    address, clients, certificates = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    key = SigningKey.load_or_create(clients / "signing-key.pem")
    provider = IdentityProvider(load_or_create(clients), key, lifetime=300)
    uvicorn.run(
        provider.app(),
        host=address,
        port=443,
        log_level="warning",
        ssl_certfile=str(certificates / "public.crt"),
        timeout_graceful_shutdown=1,
        ssl_keyfile=str(certificates / "private.key"),
    )


if __name__ == "__main__":
    main()
