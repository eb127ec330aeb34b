"""The identity provider's clients. A file each holds the secret, readable by its owner alone."""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from lakewright_sandbox.runtime.errors import CredentialsFileError

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
        secret = secrets.token_urlsafe(32)
        temporary = file.with_name(f".{file.name}.{os.getpid()}")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as written:
            written.write(secret)
        temporary.replace(file)
    if not secret:
        raise CredentialsFileError(
            f"{file}: expected the secret of an OAuth2 client. Delete the file to get a new one."
        )
    return secret
