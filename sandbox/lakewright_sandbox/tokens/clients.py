"""The identity provider's clients. A file each holds the secret, readable by its owner alone."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from lakewright_sandbox.errors import CredentialsFileError
from lakewright_sandbox.runtime.credentials import write_private

STACK = "stack"
JOBS = "jobs"
NAMES = (STACK, JOBS)
"""The clients of the stack and of jobs. Each has a file, so that `file:PATH` is a reference to its secret."""
_OF_TENANT = re.compile(rf"{JOBS}-[a-z]([a-z0-9-]{{0,38}}[a-z0-9])?")
"""Ids of the clients of tenants, whose files the stacks make."""


@dataclass(frozen=True)
class OAuthClient:
    """A client and its allowed audiences. The first audience is the default."""

    client_id: str
    secret: str
    audiences: tuple[str, ...] = ("lakekeeper",)
    scopes: tuple[str, ...] = ("lakekeeper",)

    def has_secret(self, secret: str) -> bool:
        """Return whether a secret is the client's."""
        return hmac.compare_digest(self.secret.encode(), secret.encode())


class ClientFolder(Mapping[str, OAuthClient]):
    """The clients of a folder by id: `stack`, `jobs`, and `jobs-TENANT` as soon as its file exists."""

    def __init__(self, folder: Path) -> None:
        """Read the clients of the stack and of jobs; create missing secrets."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._known = {name: OAuthClient(name, _secret(folder / name)) for name in NAMES}

    def __getitem__(self, client_id: str) -> OAuthClient:
        """Return a client. Raises KeyError."""
        if client_id in self._known:
            return self._known[client_id]
        file = self._folder / client_id
        # The folder has other files, such as the key that signs tokens.
        if not _OF_TENANT.fullmatch(client_id) or not file.is_file():
            raise KeyError(client_id)
        return OAuthClient(client_id, _secret(file))

    def __iter__(self) -> Iterator[str]:
        """Yield the ids."""
        yield from self._known
        yield from sorted(file.name for file in self._folder.iterdir() if _OF_TENANT.fullmatch(file.name))

    def __len__(self) -> int:
        """Return the number of clients."""
        return len(list(self))


def load_or_create(folder: Path) -> Mapping[str, OAuthClient]:
    """Return the clients by id; create missing secrets. Raises CredentialsFileError for an empty file."""
    return ClientFolder(folder)


def _secret(file: Path) -> str:
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        secret = secrets.token_hex(32)
        write_private(file, secret.encode())
    if not secret:
        raise CredentialsFileError(
            f"{file}: expected the secret of an OAuth2 client. Delete the file to get a new secret."
        )
    return secret
