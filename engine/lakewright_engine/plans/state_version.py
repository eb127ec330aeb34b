"""The version of a stack's state: two states with the same version hold the same resources."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

from lakewright_engine.model.signatures import SECRET, SIGNATURE
from lakewright_engine.plans.model import StateVersion

_TIMES = ("created", "modified", "sourcePosition", "stackTrace")


def state_version(deployment: dict[str, Any]) -> StateVersion:
    """Return the version of an exported deployment. Its time distinguishes states that differ only in secrets."""
    resources = [_drop_times(resource) for resource in _items(deployment, "resources")]
    pending = [
        {**operation, "resource": _drop_times(operation.get("resource") or {})}
        for operation in _items(deployment, "pending_operations")
    ]
    manifest = cast("dict[str, Any]", deployment.get("manifest") or {})
    return StateVersion(content_hash({"resources": resources, "pending": pending}), str(manifest.get("time") or ""))


def content_hash(value: Any) -> str:
    """Return the SHA-256 of a JSON value."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def canonical_json(value: Any) -> bytes:
    """Return JSON text that is the same for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str).encode()


def _items(deployment: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return deployment.get(key) or []


def _drop_times(resource: dict[str, Any]) -> dict[str, Any]:
    return {key: _drop_ciphertexts(value) for key, value in resource.items() if key not in _TIMES}


def _drop_ciphertexts(value: Any) -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        if members.get(SIGNATURE) == SECRET:
            return {SIGNATURE: SECRET}
        return {key: _drop_ciphertexts(item) for key, item in members.items()}
    if isinstance(value, list):
        return [_drop_ciphertexts(item) for item in cast("list[Any]", value)]
    return value
