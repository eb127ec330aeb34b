"""References to secrets: parse, resolve, and detect changes of the secret.

A reference is `env:NAME`, `file:PATH`, `aws-secretsmanager:ARN[#KEY]`, `vault:PATH#KEY` or `config:KEY`. The state
holds the reference, a salt and a salted fingerprint; never the secret.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import AfterValidator

from lakewright.errors import LakewrightError

SCHEMES = ("env", "file", "aws-secretsmanager", "vault", "config")
FORMS = "env:NAME, file:PATH, aws-secretsmanager:ARN, vault:PATH#KEY or config:KEY"

ConfigLookup = Callable[[str], str | None]
"""Reads a key of the stack's (decrypted) configuration; None if it is not set."""


class UnresolvedCredentialError(LakewrightError):
    """A secret cannot be read. The message names the reference, never a secret."""


class UndecryptedConfigError(UnresolvedCredentialError):
    """A value of the stack's configuration cannot be decrypted here: without passphrase, or by another provider."""


def check_reference(value: str) -> str:
    """Return a reference as it is. Raises ValueError, whose message never repeats the value."""
    scheme, colon, target = value.partition(":")
    if not colon or scheme not in SCHEMES or not target.strip():
        # The value may be the secret itself, so the message must not repeat it.
        raise ValueError(f"must be a reference to a secret ({FORMS}), not the secret itself")
    if scheme == "env" and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", target):
        raise ValueError("the name after `env:` must be that of an environment variable")
    if scheme == "vault" and not re.fullmatch(r"[^#\s]+#[^#\s]+", target):
        raise ValueError("a reference to Vault looks like `vault:secret/data/PATH#KEY`")
    if scheme == "aws-secretsmanager" and not target.startswith("arn:"):
        raise ValueError("a reference to Secrets Manager looks like `aws-secretsmanager:arn:aws:secretsmanager:...`")
    return value


Reference = Annotated[str, AfterValidator(check_reference)]
"""A reference to a secret, as text."""


def no_config(_key: str) -> str | None:
    """Look up a key where there is no configuration."""
    return None


def resolve(reference: str, config: ConfigLookup = no_config) -> str:
    """Return the secret of a reference.

    Raises:
        UnresolvedCredentialError: It cannot be read, or is empty.
    """
    scheme, _, target = reference.partition(":")
    match scheme:
        case "env":
            secret = os.environ.get(target)
            hint = f"set the environment variable {target}"
        case "file":
            secret, hint = _read_file_secret(reference, target), f"put the secret into {target}"
        case "config":
            secret = config(target)
            hint = f"run `lakewright config set --secret {target}`"
        case "vault":
            secret, hint = _read_vault_secret(reference, target), f"write the key {target.partition('#')[2]} there"
        case "aws-secretsmanager":
            secret, hint = _read_secrets_manager_secret(reference, target), "store the secret there"
        case _:
            raise UnresolvedCredentialError(f"`{scheme}:` is not a kind of reference; expected {FORMS}")
    if not secret:
        raise UnresolvedCredentialError(f"`{reference}` is empty or not set: {hint}")
    return secret


def _read_file_secret(reference: str, path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UnresolvedCredentialError(f"`{reference}` cannot be read: {type(error).__name__}") from None


def _read_vault_secret(reference: str, target: str) -> str | None:
    import httpx  # noqa: PLC0415 - only users of Vault pay for it

    path, _, key = target.partition("#")
    address, token = os.environ.get("VAULT_ADDR"), os.environ.get("VAULT_TOKEN")
    if not address or not token:
        raise UnresolvedCredentialError(f"`{reference}` needs VAULT_ADDR and VAULT_TOKEN in the environment")
    url = f"{address.rstrip('/')}/v1/{path.lstrip('/')}"
    headers = {"X-Vault-Token": token}
    if namespace := os.environ.get("VAULT_NAMESPACE"):
        headers["X-Vault-Namespace"] = namespace
    try:
        response = httpx.get(url, headers=headers, timeout=10)
    except httpx.HTTPError as error:
        raise UnresolvedCredentialError(
            f"`{reference}`: Vault at {address} did not respond: {type(error).__name__}"
        ) from None
    if response.status_code != 200:
        raise UnresolvedCredentialError(f"`{reference}`: Vault at {address} returned {response.status_code}")
    try:
        body = response.json()
    except ValueError:
        raise UnresolvedCredentialError(f"`{reference}`: Vault at {address} returned no JSON") from None
    return _parse_vault_value(body, key)


def _parse_vault_value(body: Any, key: str) -> str | None:
    """Return the value of a key of a KV secret. Version 2 nests the pairs in a second `data`."""
    pairs: Any = cast(dict[str, Any], body).get("data") if isinstance(body, dict) else None
    pairs = cast(dict[str, Any], pairs) if isinstance(pairs, dict) else {}
    inner = pairs.get("data")
    if isinstance(inner, dict) and "metadata" in pairs:
        pairs = cast(dict[str, Any], inner)
    value = pairs.get(key)
    return value if isinstance(value, str) else None


def _read_secrets_manager_secret(reference: str, target: str) -> str | None:
    import boto3  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] - slow to load
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]

    arn, _, key = target.partition("#")
    region = arn.split(":")[3] if arn.count(":") >= 6 else None
    try:
        client = cast(Any, boto3).client("secretsmanager", region_name=region)
        secret = client.get_secret_value(SecretId=arn).get("SecretString")
    except (BotoCoreError, ClientError) as error:
        code = cast(Any, error).response["Error"]["Code"] if isinstance(error, ClientError) else type(error).__name__
        raise UnresolvedCredentialError(f"`{reference}`: Secrets Manager returned {code}") from None
    if not key or not secret:
        return secret
    try:
        return json.loads(secret).get(key)
    except (ValueError, AttributeError):
        raise UnresolvedCredentialError(f"`{reference}`: the secret is not a JSON object with the key {key}") from None


SALT_BYTES = 16
"""Size of the salt of a fingerprint."""


def fingerprint(values: list[str], salt: str | None = None) -> str:
    """Return `SALT:HASH` of secrets, with a new salt unless `salt` is given."""
    salt = salt or secrets.token_hex(SALT_BYTES)
    digest = hmac.new(bytes.fromhex(salt), digestmod=hashlib.sha256)
    for value in values:
        digest.update(hashlib.sha256(value.encode()).digest())
    return f"{salt}:{digest.hexdigest()}"


def matches_fingerprint(values: list[str], recorded_fingerprint: str) -> bool:
    """Return whether a recorded fingerprint is of these secrets."""
    return hmac.compare_digest(fingerprint(values, recorded_fingerprint.partition(":")[0]), recorded_fingerprint)


@dataclass(frozen=True)
class ClientToken:
    """A token that an identity provider issues to an OAuth2 client."""

    token_url: str
    client_id: str
    client_secret: str | None
    """Reference as in `credentials.references`; None if the spec has none for commands outside the cluster."""
    audience: str | None = None
    scope: str | None = None
