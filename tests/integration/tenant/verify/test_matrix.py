"""Each storage backend with each delegation and both designs of computing units: up, verify, drift, destroy.

By default one tenant has all twelve combinations. The long form deploys a tenant for each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from lakewright.aws.access import access_policy, trust_policy
from lakewright.names.object_names import ROLE_PATH
from lakewright_sandbox.runtime.state import Sandbox

from ....tenant_project import Tenant, changes_of
from ..conftest import aws_client

pytestmark = [pytest.mark.xdist_group("verify"), pytest.mark.timeout(600)]

BACKENDS = ("aws", "s3", "existing")
DELEGATIONS = ("vended", "remote-signing")
BOUND, CHOSEN = "bound", "chosen"
"""Design 1: a unit has one warehouse. Design 2: each execution chooses one."""
DESIGNS = (BOUND, CHOSEN)

Combination = tuple[str, str, str]
ALL: Sequence[Combination] = [*product(BACKENDS, DELEGATIONS, DESIGNS)]
CASES = [[one] for one in ALL] if os.environ.get("LAKEWRIGHT_FULL") else [ALL]
SOFT = {"delete-profile": {"type": "soft", "expiration-seconds": 86400}}


def warehouse_of(combination: Combination) -> str:
    return "-".join(combination[:2])


class MatrixTenant:
    """A tenant with some combinations, and the buckets and roles that it brings."""

    def __init__(self, project: Path, sandbox: Sandbox, name: str, combinations: Sequence[Combination]) -> None:
        self.sandbox, self.combinations = sandbox, combinations
        self.names = list(dict.fromkeys(warehouse_of(one) for one in combinations))
        admin = sandbox.admin
        secrets = {"STORE_ID": admin.access_key_id, "STORE_SECRET": admin.secret_access_key.get_secret_value()}
        warehouses = [
            {
                "name": warehouse_of(one),
                "storage": warehouse_of(one),
                "delegation": one[1],
                "deletion": "purge",
                "namespaces": ["results"],
            }
            for one in {warehouse_of(one): one for one in combinations}.values()
        ]
        units = [
            {"name": f"unit-{number}", "runtime": "spark", **self._choice(one)}
            for number, one in enumerate(combinations)
        ]
        spec: dict[str, Any] = {
            "version": 1,
            "environment": "sandbox",
            "name": name,
            "owner": "tests",
            "storage": {warehouse_of(one): self._storage(name, one) for one in combinations},
            "warehouses": warehouses,
            "computing_units": units,
        }
        self.tenant = Tenant(project, sandbox, spec, environ=secrets)
        self.tenant.write()
        self.tenant.output("stack", "init")

    def _choice(self, one: Combination) -> dict[str, Any]:
        return {"warehouse": warehouse_of(one)} if one[2] == BOUND else {"warehouses": [warehouse_of(one)]}

    def _storage(self, name: str, one: Combination) -> dict[str, Any]:
        backend, delegation, _ = one
        bucket, region = f"{name}-{warehouse_of(one)}", self.sandbox.aws.region
        if backend == "aws":
            return {"backend": "aws", "bucket": bucket}
        s3 = aws_client(self.sandbox, "s3")
        s3.create_bucket(Bucket=bucket)
        if backend == "s3":
            keys = {"access_key_id": "env:STORE_ID", "secret_access_key": "env:STORE_SECRET"}
            place = {"backend": "s3", "bucket": bucket, "endpoint": self.sandbox.aws.endpoint, "region": region}
            return place | {"credential": keys, "sts": delegation == "vended"}
        iam, role = aws_client(self.sandbox, "iam"), f"{name}-{delegation}"
        trust = json.dumps(trust_policy(self.sandbox.aws.catalog_principal_arn, f"external-id-of-{name}"))
        if role not in [found["RoleName"] for found in iam.list_roles()["Roles"]]:
            iam.create_role(RoleName=role, Path=ROLE_PATH, AssumeRolePolicyDocument=trust)
        rights = json.dumps(access_policy(bucket, f"{name}/{warehouse_of(one)}", region=region))
        iam.put_role_policy(RoleName=role, PolicyName="lakewright", PolicyDocument=rights)
        arn = iam.get_role(RoleName=role)["Role"]["Arn"]
        brought = {"backend": "existing", "bucket": bucket, "region": region, "role_arn": arn}
        return brought | {"external_id": f"external-id-of-{name}"}

    def verify(self) -> dict[str, Any]:
        done = self.tenant.run("verify", "--json")
        result = json.loads(done.stdout)
        failed = [check for check in result["checks"] if not check["holds"]]
        assert (done.returncode, failed) == (0, []), done.stderr
        return result

    def units(self) -> dict[str, list[str]]:
        """Return the warehouses that each unit's rendered configuration has."""
        found: dict[str, list[str]] = {}
        for file in (self.tenant.folder / "rendered" / self.tenant.name).rglob("*configmap*catalog*.yaml"):
            manifest = yaml.safe_load(file.read_text())
            config = json.loads(manifest["data"]["catalog.json"])
            found[manifest["metadata"]["name"]] = [warehouse["name"] for warehouse in config["warehouses"]]
        return found


@pytest.mark.parametrize("combinations", CASES, ids=lambda case: "-".join(case[0]) if len(case) == 1 else "all")
def test_life_of_each_combination(
    combinations: list[Combination],
    project: Path,
    sandbox: Sandbox,
    stack_http: httpx.Client,
    name_of_tenant: Callable[[], str],
) -> None:
    matrix = MatrixTenant(project, sandbox, name_of_tenant(), combinations)
    tenant = matrix.tenant
    ids = tenant.up()["outputs"]["warehouse_ids"]
    assert set(ids) == set(matrix.names)

    written = {
        check["warehouse"]: check["evidence"] for check in matrix.verify()["checks"] if check["probe"] == "table"
    }
    assert set(written) == set(matrix.names)
    expected = {f"unit-{number}-catalog": [warehouse_of(one)] for number, one in enumerate(combinations)}
    assert matrix.units() == expected

    for warehouse in ids.values():
        stack_http.post(f"/management/v1/warehouse/{warehouse}/delete-profile", json=SOFT).raise_for_status()
    drifted = {("update", "Warehouse", f"{tenant.name}-{warehouse}") for warehouse in matrix.names}
    assert changes_of(tenant.verb("preview", "--refresh")) == drifted
    tenant.up("--refresh")
    assert changes_of(tenant.verb("preview", "--refresh", "--expect-no-changes")) == set()
    matrix.verify()

    tenant.verb("destroy", "--yes")
    assert tenant.recorded_kinds() <= {"Stack"}
    left = {bucket["Name"] for bucket in aws_client(sandbox, "s3").list_buckets()["Buckets"]}
    brought = {f"{tenant.name}-{warehouse_of(one)}" for one in combinations if one[0] != "aws"}
    assert {bucket for bucket in left if bucket.startswith(f"{tenant.name}-")} == brought
