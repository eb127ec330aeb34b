"""The fingerprint of a warehouse's credential in a kept plan and in the update by that plan."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.credentials.random_secret import SEED
from lakewright.credentials.references import matches_fingerprint
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

SECRETS = {"STORE_KEY_ID": "key-1", "STORE_SECRET": "secret-1"}


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


def compute_fingerprint(name: str = "main") -> str:
    """Return the fingerprint of a new warehouse, as a run computes it."""
    props: dict[str, Any] = {
        "server": {"endpoint": "http://127.0.0.1:1"},
        "project_id": "acme",
        "name": name,
        "storage": {
            "type": "s3",
            "bucket": "acme-lake",
            "region": "us-east-1",
            "key_prefix": name,
            "sts_enabled": False,
        },
        "credential": {
            "type": "access-key",
            "access_key_id": "env:STORE_KEY_ID",
            "secret_access_key": "env:STORE_SECRET",
        },
    }
    provider = WarehouseProvider()
    planned_fingerprint = provider.complete_args(provider.args.parse(props), {}).credential_fingerprint
    assert planned_fingerprint is not None
    assert matches_fingerprint(list(SECRETS.values()), planned_fingerprint)
    return planned_fingerprint


def test_update_by_a_plan_has_the_planned_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SEED, "00" * 32)
    assert compute_fingerprint() == compute_fingerprint()
    assert compute_fingerprint() != compute_fingerprint("other")


def test_runs_without_a_plan_have_new_fingerprints() -> None:
    assert compute_fingerprint() != compute_fingerprint()
