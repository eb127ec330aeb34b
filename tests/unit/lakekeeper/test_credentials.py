"""Secrets by reference: where each kind is read, what is refused, and fingerprints that show changes."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import boto3
import moto
import pytest
from lakewright.credentials.references import (
    Reference,
    UnresolvedCredentialError,
    fingerprint,
    matches_fingerprint,
    resolve,
)
from pydantic import TypeAdapter, ValidationError

REFERENCE: TypeAdapter[str] = TypeAdapter(Reference)


def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_SECRET", "s3cret")
    assert resolve("env:STORAGE_SECRET") == "s3cret"
    monkeypatch.delenv("STORAGE_SECRET")
    with pytest.raises(UnresolvedCredentialError, match="set the environment variable STORAGE_SECRET"):
        resolve("env:STORAGE_SECRET")


def test_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s3cret\n")
    assert resolve(f"file:{file}") == "s3cret"
    with pytest.raises(UnresolvedCredentialError, match="cannot be read: FileNotFoundError"):
        resolve(f"file:{tmp_path}/nothing")


def test_from_the_stacks_configuration() -> None:
    assert resolve("config:storage-secret", {"storage-secret": "s3cret"}.get) == "s3cret"
    with pytest.raises(UnresolvedCredentialError, match="lakewright config set --secret other"):
        resolve("config:other", {}.get)


class VaultServer(BaseHTTPRequestHandler):
    """Answers one path of each of Vault's two key-value engines."""

    def do_GET(self) -> None:
        bodies = {
            "/v1/secret/data/lake": b'{"data": {"data": {"key": "two"}, "metadata": {"version": 1}}}',
            "/v1/kv/lake": b'{"data": {"key": "one"}}',
            "/v1/html": b"<html>",
        }
        body = bodies.get(self.path) if self.headers["X-Vault-Token"] == "token" else None
        self.send_response(200 if body else 403)
        self.end_headers()
        self.wfile.write(body or b"{}")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with HTTPServer(("127.0.0.1", 0), VaultServer) as server:
        Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        monkeypatch.setenv("VAULT_ADDR", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("VAULT_TOKEN", "token")
        yield
        server.shutdown()


@pytest.mark.usefixtures("vault")
def test_vault_with_both_versions_of_its_store() -> None:
    assert resolve("vault:kv/lake#key") == "one"
    assert resolve("vault:secret/data/lake#key") == "two"


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("vault:kv/other#key", "returned 403"),
        ("vault:kv/lake#other", "write the key other there"),
        ("vault:html#key", "returned no JSON"),
    ],
)
def test_missing_vault_values(reference: str, expected: str) -> None:
    with pytest.raises(UnresolvedCredentialError, match=expected):
        resolve(reference)


def test_vault_needs_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VAULT_ADDR", raising=False)
    with pytest.raises(UnresolvedCredentialError, match="needs VAULT_ADDR and VAULT_TOKEN"):
        resolve("vault:kv/lake#key")
    monkeypatch.setenv("VAULT_ADDR", "http://127.0.0.1:9")
    monkeypatch.setenv("VAULT_TOKEN", "t")
    with pytest.raises(UnresolvedCredentialError, match="did not respond: ConnectError"):
        resolve("vault:kv/lake#key")


def test_from_secrets_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    with moto.mock_aws():
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
        manager: Any = boto3.client("secretsmanager", region_name="eu-central-1")
        plain = manager.create_secret(Name="plain", SecretString="s3cret")["ARN"]
        pairs = manager.create_secret(Name="pairs", SecretString='{"key": "of-pair"}')["ARN"]
        assert resolve(f"aws-secretsmanager:{plain}") == "s3cret"
        assert resolve(f"aws-secretsmanager:{pairs}#key") == "of-pair"
        with pytest.raises(UnresolvedCredentialError, match="not a JSON object with the key key"):
            resolve(f"aws-secretsmanager:{plain}#key")
        manager.delete_secret(SecretId="plain", ForceDeleteWithoutRecovery=True)
        with pytest.raises(UnresolvedCredentialError, match="Secrets Manager returned ResourceNotFoundException"):
            resolve(f"aws-secretsmanager:{plain}")


@pytest.mark.parametrize(
    "value",
    [
        "wJalrXUtnFEMI/K7MDENG",
        "AKIAIOSFODNN7EXAMPLE",
        "env:not-a-name",
        "vault:path",
        "aws-secretsmanager:x",
        "pw:x",
    ],
)
def test_other_references_are_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(ValidationError) as refused:
        REFERENCE.validate_python(value)
    assert value not in str(refused.value.errors(include_input=False, include_url=False, include_context=False))


@pytest.mark.parametrize(
    "value",
    [
        "env:NAME",
        "file:~/key",
        "config:lakewright:key",
        "vault:kv/x#y",
        "aws-secretsmanager:arn:aws:secretsmanager:r:1:secret:x",
    ],
)
def test_each_kind_of_reference_is_accepted(value: str) -> None:
    assert REFERENCE.validate_python(value) == value


def test_fingerprint_shows_a_change_and_nothing_else() -> None:
    old_fingerprint = fingerprint(["id", "s3cret"])
    assert matches_fingerprint(["id", "s3cret"], old_fingerprint)
    assert not matches_fingerprint(["id", "other"], old_fingerprint)
    assert not matches_fingerprint(["ids", "3cret"], old_fingerprint)  # The boundary between two values matters.
    assert fingerprint(["id", "s3cret"]) != old_fingerprint  # Each fingerprint has its own salt.
    assert "s3cret" not in old_fingerprint
