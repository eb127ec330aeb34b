"""Fingerprints of policy documents: they show without a secret whether a live document equals the declared document."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

from lakewright.credentials.references import fingerprint

TRUST_FINGERPRINT = "trust_fingerprint"
"""Output of the component `AccessRole`: the fingerprint of the role's trust policy."""


def normalize_policy(document: Any) -> Any:
    """Return a policy in a normal form, which is equal for documents that differ in single-item lists and their order.

    Text that is not JSON is returned as it is.
    """
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except ValueError:
            return document
    return _sort_lists(document)


def fingerprint_policy(document: Any, role: str) -> str:
    """Return a salted fingerprint that is equal for documents with an equal normal form.

    Trust policies hold an external ID of 122 random bits, so that they cannot be guessed from their fingerprint.

    Args:
        document: The policy, as text or parsed.
        role: The name of the role, which gives the salt.
    """
    salt = hashlib.sha256(role.encode()).hexdigest()[:32]
    return fingerprint([json.dumps(normalize_policy(document), sort_keys=True)], salt)


def _sort_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sort_lists(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        items = [_sort_lists(item) for item in cast(list[Any], value)]
        return items[0] if len(items) == 1 else sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    return value
