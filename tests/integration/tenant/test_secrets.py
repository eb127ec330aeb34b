"""No secret that a tenant is given, or that is made for it, is found in anything that a stack leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from lakewright_engine.model import Secret
from lakewright_engine.project import Project
from lakewright_sandbox.credentials import load

pytestmark = pytest.mark.timeout(300)

PASSPHRASE = "correct horse battery staple"


def test_no_secret_is_found_in_what_a_stack_leaves(
    make_tenant: Callable[..., Any], aws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One warehouse with a role and an external id, one with a key by reference."""
    tenant = make_tenant()
    keys = load(tenant.sandbox.credentials_file)
    admin = keys["admin"]
    store = f"{tenant.name}-store"
    aws("s3").create_bucket(Bucket=store)
    tenant.environ = {
        "STORE_ID": admin.access_key_id,
        "STORE_SECRET": admin.secret_access_key.get_secret_value(),
    }
    tenant.spec["storage"]["store"] = {
        "backend": "s3",
        "bucket": store,
        "endpoint": tenant.sandbox.aws.endpoint,
        "region": tenant.sandbox.aws.region,
        "credential": {"access_key_id": "env:STORE_ID", "secret_access_key": "env:STORE_SECRET"},
        "sts": False,
    }
    tenant.spec["warehouses"] = [
        {"name": "executions", "storage": "main", "namespaces": ["results"], "deletion": "purge"},
        {
            "name": "archive",
            "storage": "store",
            "namespaces": ["results"],
            "deletion": "purge",
            "delegation": "remote-signing",
        },
    ]
    tenant.spec["computing_units"] = [{"name": "workflows", "runtime": "texera", "warehouses": "all"}]
    tenant.write()
    tenant.up()
    tenant.told("up", "--yes", "--diff", "--engine", "embedded")
    tenant.told("preview", "--refresh", "--diff", "--engine", "embedded")
    tenant.told("stack", "output", "--json")
    tenant.told("stack", "export")
    for form in ("json", "spark", "pyiceberg", "env"):
        tenant.told("config", "--format", form)
    tenant.catalog("executions").create_table("results.flights", schema=pa.schema([("n", pa.int64())]))
    secrets = {
        "the passphrase": PASSPHRASE,
        "the administrator's key": admin.secret_access_key.get_secret_value(),
        "the catalog's key": keys["lakekeeper"].secret_access_key.get_secret_value(),
        "the id of the store's key": admin.access_key_id,
        "the external id": _external_id(tenant, monkeypatch),
    }

    left = {str(file): file.read_text() for file in tenant.folder.rglob("*") if file.is_file()}
    left["what the commands printed"] = "\n".join(tenant.said)

    assert len(left) > 10
    for what, secret in secrets.items():
        assert len(secret) > 10
        assert [place for place, text in left.items() if secret in text] == [], what


def _external_id(tenant: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    monkeypatch.setenv("PULUMI_BACKEND_URL", (tenant.folder / "state").as_uri())
    project = Project.load(tenant.folder)
    snapshot = project.backend().load(project.name, tenant.name)
    assert snapshot is not None
    (made,) = [one for one in snapshot.resources if one.type.endswith("lakekeeper:ExternalId")]
    assert isinstance(made.outputs["value"], Secret)
    return str(made.outputs["value"].value)
