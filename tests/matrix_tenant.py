"""Tenants of the matrix: storage backend x delegation x design of computing units."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import boto3
import yaml
from botocore.config import Config
from lakewright.aws.access import access_policy, trust_policy
from lakewright.names.object_names import ROLE_PATH
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig

from tests.tenant_project import Tenant

BACKENDS = ("aws", "s3", "existing")
DELEGATIONS = ("vended", "remote-signing")
BOUND, CHOSEN = "bound", "chosen"
"""Design 1: a unit has one warehouse. Design 2: each execution chooses one."""
DESIGNS = (BOUND, CHOSEN)

Combination = tuple[str, str, str]
ALL: Sequence[Combination] = [*product(BACKENDS, DELEGATIONS, DESIGNS)]


def name_warehouse(combination: Combination) -> str:
    return "-".join(combination[:2])


class MatrixTenant:
    """A tenant with some combinations, and the buckets and roles that it brings."""

    def __init__(self, project: Path, sandbox: Sandbox, name: str, combinations: Sequence[Combination]) -> None:
        self.sandbox, self.combinations = sandbox, combinations
        self.names = list(dict.fromkeys(name_warehouse(combination) for combination in combinations))
        admin = sandbox.admin
        secrets = {"STORE_ID": admin.access_key_id, "STORE_SECRET": admin.secret_access_key.get_secret_value()}
        warehouses = [
            {
                "name": name_warehouse(combination),
                "storage": name_warehouse(combination),
                "delegation": combination[1],
                "deletion": "purge",
                "namespaces": ["results"],
            }
            for combination in {name_warehouse(combination): combination for combination in combinations}.values()
        ]
        units = [
            {"name": f"unit-{number}", "runtime": "spark", **self._choice(combination)}
            for number, combination in enumerate(combinations)
        ]
        spec: dict[str, Any] = {
            "version": 1,
            "environment": "sandbox",
            "name": name,
            "owner": "tests",
            "storage": {name_warehouse(combination): self._storage(name, combination) for combination in combinations},
            "warehouses": warehouses,
            "computing_units": units,
        }
        self.tenant = Tenant(project, sandbox, spec, environ=secrets)
        self.tenant.write()
        self.tenant.output("stack", "init")

    def list_visible_warehouses(self, combination: Combination) -> list[str]:
        """Return the warehouses of a combination's unit, the default first."""
        bound_warehouse = name_warehouse(combination)
        return (
            [bound_warehouse]
            if combination[2] == BOUND
            else [bound_warehouse, *(name for name in self.names if name != bound_warehouse)]
        )

    def _choice(self, combination: Combination) -> dict[str, Any]:
        return (
            {"warehouse": name_warehouse(combination)}
            if combination[2] == BOUND
            else {"warehouses": self.list_visible_warehouses(combination)}
        )

    def _storage(self, name: str, combination: Combination) -> dict[str, Any]:
        backend, delegation, _ = combination
        bucket, region = f"{name}-{name_warehouse(combination)}", self.sandbox.aws.region
        if backend == "aws":
            return {"backend": "aws", "bucket": bucket}
        s3 = aws_client(self.sandbox, "s3")
        s3.create_bucket(Bucket=bucket)
        if backend == "s3":
            keys = {"access_key_id": "env:STORE_ID", "secret_access_key": "env:STORE_SECRET"}
            s3_storage = {"backend": "s3", "bucket": bucket, "endpoint": self.sandbox.aws.endpoint, "region": region}
            return s3_storage | {"credential": keys, "sts": delegation == "vended"}
        iam, role = aws_client(self.sandbox, "iam"), f"{name}-{delegation}"
        trust = json.dumps(trust_policy(self.sandbox.aws.catalog_principal_arn, f"external-id-of-{name}"))
        if role not in [entry["RoleName"] for entry in iam.list_roles()["Roles"]]:
            iam.create_role(RoleName=role, Path=ROLE_PATH, AssumeRolePolicyDocument=trust)
        rights = json.dumps(access_policy(bucket, f"{name}/{name_warehouse(combination)}", region=region))
        iam.put_role_policy(RoleName=role, PolicyName="lakewright", PolicyDocument=rights)
        arn = iam.get_role(RoleName=role)["Role"]["Arn"]
        existing_storage = {"backend": "existing", "bucket": bucket, "region": region, "role_arn": arn}
        return existing_storage | {"external_id": f"external-id-of-{name}"}

    def verify(self) -> dict[str, Any]:
        done = self.tenant.run("verify", "--json")
        result = json.loads(done.stdout)
        failed = [check for check in result["checks"] if not check["holds"]]
        assert (done.returncode, failed) == (0, []), done.stderr
        return result

    def units(self) -> dict[Combination, CatalogConfig]:
        """Return the catalog configuration of each unit, as its rendered ConfigMap has it."""
        folder = self.tenant.folder / "rendered" / self.tenant.name
        configs: dict[Combination, CatalogConfig] = {}
        for number, combination in enumerate(self.combinations):
            (file,) = folder.rglob(f"*configmap*unit-{number}-catalog.yaml")
            data = yaml.safe_load(file.read_text())["data"]
            configs[combination] = CatalogConfig.from_json(data["catalog.json"])
        return configs


def aws_client(sandbox: Sandbox, service: str) -> Any:
    """Return an AWS client of the sandbox with the admin's keys."""
    return boto3.client(
        service,
        endpoint_url=sandbox.aws.endpoint,
        region_name=sandbox.aws.region,
        aws_access_key_id=sandbox.admin.access_key_id,
        aws_secret_access_key=sandbox.admin.secret_access_key.get_secret_value(),
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )
