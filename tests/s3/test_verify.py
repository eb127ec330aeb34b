"""`lakewright verify` on a real store, under a catalog that enforces grants: the store denies, too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lakewright_sandbox import lifecycle
from lakewright_sandbox.runtime.state import Sandbox, StoreState
from lakewright_sandbox.store.access import KEY_VARIABLES

from tests.s3.conftest import read_secret
from tests.tenant_project import Tenant, create_project, tenant_spec
from tests.verifying import group_failed_checks, make_verify
from tests.wide_catalog import wide_catalog

AT_S3 = ("other-tables", "other-prefixes", "bucket-root", "bucket-policy")
WAREHOUSES = [
    {"name": "executions", "namespaces": ["results"], "deletion": "purge"},
    {"name": "signed", "namespaces": ["results"], "delegation": "remote-signing", "deletion": "purge"},
]


@pytest.fixture
def guarded(tmp_path: Path, store: StoreState) -> Iterator[Sandbox]:
    """A sandbox on the running store, whose catalog enforces grants."""
    with pytest.MonkeyPatch.context() as environment:
        for name, reference in zip(KEY_VARIABLES, (store.access_key_id, store.secret_access_key), strict=True):
            environment.setenv(name, read_secret(reference))
        options = lifecycle.SandboxOptions(s3=store.endpoint, s3_region=store.region, authz="openfga")
        started = lifecycle.bring_up(tmp_path / "guarded", options).sandbox
    yield started
    lifecycle.down(tmp_path / "guarded")


def test_isolation_and_its_loss(
    tmp_path: Path, guarded: Sandbox, s3: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tenants of one project, with two warehouses each: vended credentials and signed requests.

    Then the catalog vends a key of the store instead, and each probe at S3 fails without a change of the store.
    """
    assert guarded.store is not None
    assert guarded.store.pid is None
    project = tmp_path / "project"
    create_project(project, {"sandbox": str(guarded.dir), "kubernetes": {"render_to": str(project / "rendered")}})
    bucket = f"verified-{tmp_path.name.replace('_', '-')[-20:]}"
    s3().create_bucket(Bucket=bucket)
    tenants = []
    for name in ("globex", "acme"):
        main = {
            "backend": "s3",
            "bucket": bucket,
            "endpoint": guarded.store.endpoint,
            "region": guarded.store.region,
            "credential": {
                "access_key_id": guarded.store.access_key_id,
                "secret_access_key": guarded.store.secret_access_key,
            },
        }
        units = [{"name": "unit", "runtime": "spark", "warehouses": "all"}]
        spec = tenant_spec(name, main) | {"warehouses": WAREHOUSES, "computing_units": units}
        tenants.append(Tenant(project, guarded, spec))
        tenants[-1].write()
        tenants[-1].output("stack", "init")
        tenants[-1].up()

    done = tenants[-1].run("verify", "--json")

    result = json.loads(done.stdout)
    assert (done.returncode, result["holds"], result["failed_probes"]) == (0, True, []), done.stdout
    evidence = {(check["probe"], check["warehouse"], check["attempt"]): check["evidence"] for check in result["checks"]}
    assert evidence["table", "executions", "write a table"] == "vended: PUT 200, commit 200"
    write = "write to tenant globex's prefix of executions"
    assert evidence["other-prefixes", "executions", write] == "PUT 403 AccessDenied"
    assert "not signed" in evidence["other-prefixes", "signed", write]

    acme, keys = tenants[-1], (read_secret(guarded.store.access_key_id), read_secret(guarded.store.secret_access_key))
    with wide_catalog(guarded, *keys) as wide:
        config = acme.catalog_config().model_copy(update={"uri": f"{wide}/catalog"})
        failed_checks = group_failed_checks(
            make_verify(acme, monkeypatch)(*AT_S3, config=config.select_warehouses(["executions"]))
        )

    assert set(failed_checks) == set(AT_S3)
    assert "PUT 400 MalformedPolicy" in [check.evidence for check in failed_checks["bucket-policy"]]
    remaining_keys = [entry["Key"] for entry in s3().list_objects_v2(Bucket=bucket).get("Contents", [])]
    assert [key for key in remaining_keys if "canary" in key] == []
