"""Where credentials of warehouses are kept: in the database, optionally encrypted, or in a key-value store."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
from typing import Any, Protocol

import httpx
from cryptography.fernet import Fernet, InvalidToken
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.database.models import SecretRow
from lakewright_sandbox.lakekeeper.protocol.clock import new_id
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.settings import KeyValueStore, Settings

_ENCRYPTED = "encrypted"
"""Key of an encrypted payload."""


class SecretStore(Protocol):
    """Keeps the credentials of warehouses."""

    def add_secret(self, session: Session, payload: dict[str, Any], /) -> str:
        """Store a credential and return its id."""
        ...

    def read_secret(self, session: Session, secret_id: str | None, /) -> dict[str, Any] | None:
        """Return a credential; None without an id, or if it does not exist. Raises ApiError if it cannot be read."""
        ...

    def delete_secret(self, session: Session, secret_id: str | None, /) -> None:
        """Delete a credential, if it exists."""
        ...


def create_secret_store(settings: Settings) -> SecretStore:
    """Return the store that the settings name."""
    if settings.key_value_store:
        return KeyValueSecrets(settings.key_value_store, settings.ca_file)
    return DatabaseSecrets(settings.encryption_key)


class DatabaseSecrets:
    """Credentials in the server's database, encrypted if there is a key."""

    def __init__(self, key: str | None) -> None:
        """Use an encryption key; without it, payloads are stored as they are."""
        digest = hashlib.sha256(key.encode()).digest() if key else None
        self._cipher = Fernet(base64.urlsafe_b64encode(digest)) if digest else None

    def add_secret(self, session: Session, payload: dict[str, Any]) -> str:
        """Store a credential and return its id."""
        if self._cipher:
            payload = {_ENCRYPTED: self._cipher.encrypt(json.dumps(payload).encode()).decode()}
        row = SecretRow(id=new_id(), payload=payload)
        session.add(row)
        return row.id

    def read_secret(self, session: Session, secret_id: str | None) -> dict[str, Any] | None:
        """Return a credential. Raises 500 `SecretFetchError` if it was encrypted with another key."""
        row = session.get(SecretRow, secret_id) if secret_id else None
        if row is None or self._cipher is None:
            return row.payload if row else None
        try:
            return json.loads(self._cipher.decrypt(row.payload[_ENCRYPTED]))
        except (InvalidToken, KeyError):
            raise ApiError(500, "SecretFetchError", "Error fetching secret") from None

    def delete_secret(self, session: Session, secret_id: str | None) -> None:
        """Delete a credential, if it exists."""
        if secret_id and (row := session.get(SecretRow, secret_id)):
            session.delete(row)


class KeyValueSecrets:
    """Credentials in a key-value store of version 2, such as OpenBao, after a login with user and password.

    The session of the database is not used.
    """

    def __init__(self, store: KeyValueStore, ca_file: str | None) -> None:
        """Log in. Raises ApiError if that fails."""
        self._store, self._token, self._lock = store, "", threading.Lock()
        verify = ssl.create_default_context(cafile=ca_file) if ca_file else True
        self._http = httpx.Client(base_url=store.url, timeout=10, trust_env=False, verify=verify)
        self._fetch_token()

    def add_secret(self, _session: Session, payload: dict[str, Any]) -> str:
        """Store a credential and return its id."""
        secret_id = new_id()
        self._call("POST", f"data/secret/{secret_id}", {"data": payload})
        return secret_id

    def read_secret(self, _session: Session, secret_id: str | None) -> dict[str, Any] | None:
        """Return a credential."""
        document = self._call("GET", f"data/secret/{secret_id}") if secret_id else None
        return document["data"]["data"] if document else None

    def delete_secret(self, _session: Session, secret_id: str | None) -> None:
        """Delete a credential with its versions, if it exists."""
        if secret_id:
            self._call("DELETE", f"metadata/secret/{secret_id}")

    def _fetch_token(self) -> None:
        response = self._send("POST", f"auth/userpass/login/{self._store.user}", {"password": self._store.password})
        if not response.is_success:
            raise ApiError(500, "SecretReadFailed", f"The key-value store refused the login: {response.status_code}")
        self._token = response.json()["auth"]["client_token"]

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the response's document; None if it has none. A refused token is renewed once."""
        full_path = f"{self._store.secret_mount}/{path}"
        response = self._send(method, full_path, body)
        if response.status_code == 403:
            with self._lock:
                self._fetch_token()
            response = self._send(method, full_path, body)
        if response.status_code == 404:
            return None
        if not response.is_success:
            raise ApiError(500, "SecretReadFailed", f"The key-value store responded {response.status_code}")
        return response.json() if response.content else None

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> httpx.Response:
        try:
            return self._http.request(method, f"/v1/{path}", json=body, headers={"X-Vault-Token": self._token})
        except httpx.HTTPError as error:
            message = f"The key-value store cannot be reached: {type(error).__name__}"
            raise ApiError(503, "SecretReadFailed", message) from None
