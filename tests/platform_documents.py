"""Specs of platforms for tests."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

DIGEST = "@sha256:" + "0123456789abcdef" * 4

DRIFT_CHECK: dict[str, Any] = {
    "image": f"registry.example/lakewright{DIGEST}",
    "state": "s3://acme-states?region=us-west-2",
    "passphrase": {"name": "stacks", "key": "passphrase"},
}
"""The smallest drift check."""


def production(**server: Any) -> dict[str, Any]:
    """Return the smallest spec of a production platform."""
    return {
        "version": 1,
        "server": {
            "version": "0.13.3",
            "image": f"quay.io/lakekeeper/catalog:v0.13.3{DIGEST}",
            "authentication": {
                "oidc": {"provider_uri": "https://idp.example/realms/p", "audience": ["lakekeeper"]},
                "kubernetes": {},
            },
            "authorization": {
                "openfga": {"server": {"image": f"openfga/openfga{DIGEST}", "database_uri": "env:OPENFGA_DATABASE_URI"}}
            },
            **server,
        },
        "database": {"postgres": {"host_write": "db.example", "password": "env:DATABASE_PASSWORD"}},
        "gateway": {"image": f"nginx{DIGEST}", "tls": {"secret": "gateway-tls"}},
    }


def trial(**sections: Any) -> dict[str, Any]:
    """Return the smallest spec of a trial."""
    document = {
        "version": 1,
        "trial": True,
        "server": {
            "version": "0.13.3",
            "image": "quay.io/lakekeeper/catalog:v0.13.3",
            "authorization": {"backend": "allowall"},
        },
        "database": {"trial_postgres": {"image": "postgres:17"}},
        "gateway": {"image": "nginx"},
    }
    return document | sections


def replace_value(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a document with another value at a dotted path."""
    new_document = deepcopy(document)
    part = new_document
    *steps, last = path.split(".")
    for step in steps:
        part = part.setdefault(step, {})
    part[last] = value
    return new_document
