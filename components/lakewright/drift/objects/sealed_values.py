"""Properties of a state as providers take them, with encrypted secrets left sealed.

A server never returns a secret, so a comparison has the same secret on both sides. Most comparisons then need none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakewright_engine.model.resources import (
    Asset,
    Properties,
    ResourceReference,
    SecretValue,
    Unknown,
    Value,
)

REDACTED = "[secret]"
"""Takes the place of a secret in a report."""
_SEALED = "sealed-secret"
"""Takes the place of a secret that is not decrypted: a word that most validations accept."""

Path = tuple[str, ...]
_SCALARS = frozenset({str, int, float, bool, type(None)})


def seal_secrets(properties: Properties) -> tuple[dict[str, Any], bool]:
    """Return properties with placeholders for secrets, and whether there are any."""
    secrets: list[SecretValue] = []

    def seal_secret(secret: SecretValue) -> str:
        secrets.append(secret)
        return _SEALED

    return {key: _to_plain(value, seal_secret) for key, value in properties.items()}, bool(secrets)


def decrypt_secrets(properties: Properties) -> dict[str, Any]:
    """Return properties with decrypted secrets. Raise EngineError if a secret cannot be decrypted."""
    return {key: _to_plain(value, lambda secret: secret.value) for key, value in properties.items()}


def find_secret_paths(value: object, path: Path = ()) -> list[Path]:
    """Return the paths of the secrets in properties."""
    if type(value) in _SCALARS:
        return []
    if isinstance(value, SecretValue):
        return [path]
    if isinstance(value, dict):
        members: dict[str, object] = value  # pyright: ignore[reportUnknownVariableType]
        return [secret_path for key, item in members.items() for secret_path in find_secret_paths(item, (*path, key))]
    if isinstance(value, list):
        items: list[object] = value  # pyright: ignore[reportUnknownVariableType]
        return [
            secret_path
            for index, item in enumerate(items)
            for secret_path in find_secret_paths(item, (*path, str(index)))
        ]
    return []


def mask_secrets(value: Any, path: Path, secrets: list[Path]) -> Any:
    """Return the value of a path without its secrets."""
    if any(path[: len(secret)] == secret for secret in secrets):
        return REDACTED
    if not any(secret[: len(path)] == path for secret in secrets):
        return value
    if isinstance(value, dict):
        members: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {key: mask_secrets(item, (*path, key), secrets) for key, item in members.items()}
    if isinstance(value, list):
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [mask_secrets(item, (*path, str(index)), secrets) for index, item in enumerate(items)]
    return REDACTED


def _to_plain(value: Value, open_secret: Callable[[SecretValue], Value]) -> Any:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, dict):
        return {key: _to_plain(item, open_secret) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_plain(item, open_secret) for item in value]
    if isinstance(value, SecretValue | ResourceReference):
        return _to_plain(value.id if isinstance(value, ResourceReference) else open_secret(value), open_secret)
    if isinstance(value, Asset):
        return value.wire
    return None if isinstance(value, Unknown) else value
