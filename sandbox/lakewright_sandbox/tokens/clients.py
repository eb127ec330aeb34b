"""The identity provider's clients. A file each holds the secret, readable by its owner alone."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path

from lakewright_sandbox.runtime.errors import CredentialsFileError
from lakewright_sandbox.runtime.private_files import write_private

STACK = "stack"
JOBS = "jobs"
NAMES = (STACK, JOBS)
"""The clients of the stack and of jobs. Each has a file, so that `file:PATH` is a reference to its secret."""


@dataclass(frozen=True)
class OAuthClient:
    """A client and what it may request tokens for. The first audience is the default."""

    client_id: str
    secret: str
    audiences: tuple[str, ...] = ("lakekeeper",)
    scopes: tuple[str, ...] = ("lakekeeper",)

    def has_secret(self, secret: str) -> bool:
        """Return whether a secret is the client's."""
        return hmac.compare_digest(self.secret.encode(), secret.encode())


def load_or_create(folder: Path) -> dict[str, OAuthClient]:
    """Return the clients by id; create missing secrets. Raises CredentialsFileError for an empty file."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return {name: OAuthClient(name, _secret(folder / name)) for name in NAMES}


def _secret(file: Path) -> str:
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        secret = secrets.token_hex(32)
        write_private(file, secret.encode())
    if not secret:
        raise CredentialsFileError(
            f"{file}: expected the secret of an OAuth2 client. Delete the file to get a new one."
        )
    return secret
