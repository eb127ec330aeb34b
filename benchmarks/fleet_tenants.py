"""Many tenants, made cheaply and honestly: one real `up`, then the same objects by the server's API.

The state of each further tenant is a copy of the first tenant's state, with its names and ids replaced. The benchmark
proves that this is what an `up` of each would have left: drift finds no difference, and `preview --refresh` of samples
is empty.
"""

from __future__ import annotations

import configparser
import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import httpx
import yaml
from lakewright.aws.access import access_policy, trust_policy
from lakewright.lakekeeper.warehouse.model import WarehouseArgs, create_request
from lakewright.names.object_names import ROLE_PATH

from benchmarks.ground import Ground
from demo.stage import BIN, REPOSITORY

BUCKET = "fleet-lake"
EXTERNAL_ID = "fleet-of-the-benchmark"
STORAGES = ("raw", "curated")
COLUMNS = [{"name": "id", "type": "long", "required": True}, {"name": "at", "type": "timestamptz"}]
TABLES: dict[str, dict[str, Any]] = {
    "raw.events.clicks": {"columns": [*COLUMNS, {"name": "url", "type": "string"}], "partition_by": ["days(at)"]},
    "raw.events.views": {"columns": [*COLUMNS, {"name": "page", "type": "string"}], "partition_by": ["days(at)"]},
    "raw.ops.jobs": {"columns": [*COLUMNS, {"name": "state", "type": "string"}]},
    "curated.sales.orders": {
        "columns": [*COLUMNS, {"name": "amount", "type": "decimal(12, 2)"}],
        "partition_by": ["months(at)"],
        "sort_by": ["id"],
    },
}
DYNAMIC = "pulumi-python:dynamic/lakekeeper:"
MAKERS = 4
"""Tenants that are made at the same time."""

Json = dict[str, Any]


class FleetTenants:
    """A project whose stacks are tenants on the ground's sandbox."""

    def __init__(self, ground: Ground, folder: Path) -> None:
        self._ground, self.folder = ground, folder
        sandbox = ground.sandbox
        self.http = httpx.Client(base_url=sandbox["lakekeeper"]["endpoint"], timeout=120)
        for part in ("tenants", "environments", "state"):
            (folder / part).mkdir(parents=True)
        for file in ("Pulumi.yaml", "__main__.py"):
            shutil.copy(REPOSITORY / file, folder)
        (folder / ".venv").symlink_to(sys.prefix)
        (folder / "environments" / "sandbox.yaml").write_text(yaml.safe_dump({"sandbox": sandbox["dir"]}))
        self.names: list[str] = []
        self._roles = self._make_bucket_and_roles()

    def environment(self) -> dict[str, str]:
        """Return the variables of commands on these stacks."""
        return {"PULUMI_BACKEND_URL": (self.folder / "state").as_uri(), "LAKEWRIGHT_WARM": "0"}

    def run(self, *arguments: str, **more: str) -> None:
        """Run a command of `lakewright` in the project."""
        command = [str(BIN / "lakewright"), *arguments, "-C", str(self.folder)]
        self._ground.run(command, self.environment() | more)

    def grow(self, count: int) -> None:
        """Make tenants until there are `count`."""
        new_names = [f"t{number:05}" for number in range(len(self.names), count)]
        if not self.names:
            self._up(new_names.pop(0))
        with ThreadPoolExecutor(MAKERS) as pool:
            self.names += pool.map(self._copy, new_names)

    def _up(self, name: str) -> None:
        """Make the first tenant with a real `up`. Its roles then get the whole bucket, for the other tenants."""
        for storage in STORAGES:
            self._limit(storage, f"{name}/{storage}")
        self._stack_file(name).write_text(yaml.safe_dump({"config": {"lakewright:tenant": self._spec(name)}}))
        self.run("stack", "init", "--stack", name)
        self.run("up", "--stack", name, "--yes", "--engine", "embedded")
        for storage in STORAGES:
            self._limit(storage, "")
        self.names.append(name)

    def _copy(self, name: str) -> str:
        """Make the objects of another tenant, and write its state and its stack file."""
        first = self.names[0]
        state = self._state_file(first).read_text()
        objects = _group_by_kind(json.loads(state)["checkpoint"]["latest"]["resources"])
        renamed: dict[str, str] = {first: name}
        project = {"project-id": name, "project-name": name}
        self._post("/management/v1/project", project)
        for warehouse in objects["Warehouse"]:
            renamed[warehouse["id"]] = self._copy_warehouse(warehouse, name)
        for namespace in sorted(objects["Namespace"], key=lambda entry: entry["inputs"]["name"].count(".")):
            warehouse = renamed[namespace["inputs"]["warehouse_id"]]
            levels = namespace["inputs"]["name"].split(".")
            self._post(f"/catalog/v1/{warehouse}/namespaces", {"namespace": levels})
            path = f"/catalog/v1/{warehouse}/namespaces/{'%1F'.join(levels)}?returnUuid=true"
            created_namespace = self.http.get(path).raise_for_status().json()
            renamed[namespace["outputs"]["namespace_id"]] = created_namespace["namespace-uuid"]
        for table in objects["Table"]:
            renamed |= self._copy_table(table, renamed[table["inputs"]["warehouse_id"]])
        for old, new in renamed.items():
            state = state.replace(old, new)
        self._state_file(name).write_text(state)
        self._stack_file(name).write_text(self._stack_file(first).read_text().replace(first, name))
        return name

    def _copy_warehouse(self, warehouse: Json, name: str) -> str:
        inputs = json.loads(json.dumps(warehouse["inputs"]).replace(self.names[0], name))
        inputs["credential"]["external_id"] = EXTERNAL_ID  # encrypted in the state
        body = create_request(WarehouseArgs.from_state(inputs), str)
        return self._post("/management/v1/warehouse", body, project=name)["warehouse-id"]

    def _copy_table(self, table: Json, warehouse: str) -> dict[str, str]:
        """Make a table from the metadata of the first tenant's table. Return the new values by the former values."""
        inputs, outputs = table["inputs"], table["outputs"]
        path = f"namespaces/{inputs['namespace'].replace('.', '%1F')}/tables"
        loaded = self.http.get(f"/catalog/v1/{inputs['warehouse_id']}/{path}/{inputs['name']}").raise_for_status()
        metadata = loaded.json()["metadata"]
        body = {
            "name": inputs["name"],
            "schema": metadata["schemas"][-1],
            "partition-spec": metadata["partition-specs"][-1],
            "write-order": metadata["sort-orders"][-1],
            "properties": metadata.get("properties") or {},
        }
        created_table = self._post(f"/catalog/v1/{warehouse}/{path}", body)["metadata"]
        return {
            outputs["table_location"]: created_table["location"].rstrip("/"),
            outputs["table_id"]: created_table["table-uuid"],
        }

    def _post(self, path: str, body: Json, project: str = "") -> Json:
        response = self.http.post(path, json=body, headers={"x-project-id": project} if project else {})
        if response.is_error:
            raise RuntimeError(f"{path}: {response.status_code} {response.text}")
        return response.json() if response.content else {}

    def _spec(self, name: str) -> Json:
        shared = {"backend": "existing", "bucket": BUCKET, "region": self._ground.sandbox["aws"]["region"]}
        return {
            "version": 1,
            "environment": "sandbox",
            "name": name,
            "owner": "bench",
            "storage": {
                storage: {**shared, "role_arn": arn, "external_id": EXTERNAL_ID} for storage, arn in self._roles.items()
            },
            "warehouses": [
                {"name": "raw", "storage": "raw", "namespaces": ["events", "ops"], "deletion": "purge"},
                {
                    "name": "curated",
                    "storage": "curated",
                    "namespaces": ["sales"],
                    "deletion": "purge",
                    "soft_delete_days": 7,
                },
            ],
            "tables": [{"name": table, **properties} for table, properties in TABLES.items()],
        }

    def _make_bucket_and_roles(self) -> dict[str, str]:
        sandbox = self._ground.sandbox
        keys = configparser.ConfigParser()
        keys.read(sandbox["credentials_file"])
        session = boto3.Session(**keys["admin"], region_name=sandbox["aws"]["region"])
        endpoint = sandbox["aws"]["endpoint"]
        session.client("s3", endpoint_url=endpoint).create_bucket(Bucket=BUCKET)
        self._iam = session.client("iam", endpoint_url=endpoint)
        trust = json.dumps(trust_policy(sandbox["aws"]["catalog_principal_arn"], EXTERNAL_ID))
        roles = {
            storage: self._iam.create_role(RoleName=f"fleet-{storage}", Path=ROLE_PATH, AssumeRolePolicyDocument=trust)
            for storage in STORAGES
        }
        return {storage: role["Role"]["Arn"] for storage, role in roles.items()}

    def _limit(self, storage: str, prefix: str) -> None:
        """Limit a role to a key prefix; an empty prefix is the whole bucket."""
        policy: Any = access_policy(BUCKET, prefix or "PREFIX", region=self._ground.sandbox["aws"]["region"])
        text = json.dumps(policy) if prefix else json.dumps(policy).replace("PREFIX/", "").replace("PREFIX", "")
        self._iam.put_role_policy(RoleName=f"fleet-{storage}", PolicyName="lakewright", PolicyDocument=text)

    def _stack_file(self, name: str) -> Path:
        return self.folder / "tenants" / f"Pulumi.{name}.yaml"

    def _state_file(self, name: str) -> Path:
        return self.folder / "state" / ".pulumi" / "stacks" / "lakewright" / f"{name}.json"


def _group_by_kind(resources: Iterable[Json]) -> dict[str, list[Json]]:
    groups: dict[str, list[Json]] = {}
    for resource in _dynamic(resources):
        groups.setdefault(resource["type"].removeprefix(DYNAMIC), []).append(resource)
    return groups


def _dynamic(resources: Iterable[Json]) -> Iterator[Json]:
    return (resource for resource in resources if resource["type"].startswith(DYNAMIC))
