"""Projects, buckets and IAM roles on the servers, as a random machine compares them before and after each command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.tenant.conftest import aws_client

VOLATILE = ("updated-at", "created-at", "last-updated")
"""Fields whose change is no change of the object."""
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "n", "type": "long", "required": False}]}


@dataclass(frozen=True)
class DataTable:
    """A table that a job created, which no stack declares."""

    tenant: str
    warehouse: str
    name: str
    key: str
    """Key of its metadata file in the tenant's bucket."""


def is_expected_refusal(response: httpx.Response, *, is_archived: bool, is_inaccessible: bool) -> bool:
    """Return whether a warehouse of this kind refuses a table so.

    Args:
        response: The server's response.
        is_archived: Whether the warehouse may be an archive. Only the roles of archives have an explicit deny.
        is_inaccessible: Whether the role may require another external ID than the warehouse sends.
    """
    if response.is_error and "with an explicit deny" in response.text:
        return is_archived
    if response.status_code == 412 and "ShortTermCredentialError" in response.text:
        return is_inaccessible
    return response.status_code in {403, 404}


class Observer:
    """Reads objects that stacks may own, and writes data as a job does."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.http = httpx.Client(base_url=sandbox.lakekeeper.endpoint, timeout=60)
        self.s3 = aws_client(sandbox, "s3")
        self.iam = aws_client(sandbox, "iam")

    def read_project(self, project: str) -> dict[str, Any] | None:
        """Return everything in a project; None if it does not exist."""
        headers = {"x-project-id": project}
        response = self.http.get("/management/v1/project", headers=headers)
        if response.status_code == 404:
            return None
        live_warehouses = self._list("/management/v1/warehouse", "warehouses", headers)
        warehouses = {warehouse["name"]: self._read_warehouse(warehouse) for warehouse in live_warehouses}
        roles = self._list("/management/v1/role", "roles", headers)
        return {
            "name": response.raise_for_status().json()["project-name"],
            "warehouses": warehouses,
            "roles": sorted((role["name"], role.get("description")) for role in roles),
        }

    def read_bucket(self, bucket: str) -> dict[str, Any] | None:
        """Return tags and object versions of a bucket; None if it does not exist."""
        try:
            pages = self.s3.get_paginator("list_object_versions").paginate(Bucket=bucket)
            entries = [
                entry for page in pages for kind in ("Versions", "DeleteMarkers") for entry in page.get(kind, [])
            ]
        except self.s3.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucket":
                raise
            return None
        try:
            tags = self.s3.get_bucket_tagging(Bucket=bucket)["TagSet"]
        except self.s3.exceptions.ClientError:
            tags = []
        return {
            "tags": sorted((tag["Key"], tag["Value"]) for tag in tags),
            "objects": sorted((entry["Key"], entry["VersionId"]) for entry in entries),
        }

    def read_role(self, name: str) -> dict[str, Any] | None:
        """Return trust, tags and policies of an IAM role; None if it does not exist."""
        try:
            role = self.iam.get_role(RoleName=name)["Role"]
        except self.iam.exceptions.NoSuchEntityException:
            return None
        policies = self.iam.list_role_policies(RoleName=name)["PolicyNames"]
        return {
            "trust": role["AssumeRolePolicyDocument"],
            "tags": sorted((tag["Key"], tag["Value"]) for tag in role.get("Tags", [])),
            "policies": {
                policy: self.iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
                for policy in policies
            },
        }

    def write_table(
        self, tenant: str, warehouse: str, name: str, *, is_archived: bool = False, is_inaccessible: bool = False
    ) -> DataTable | None:
        """Create a table in namespace `results` of a warehouse; None without the namespace or the access.

        Args:
            tenant: Id of the project.
            warehouse: Name of the warehouse.
            name: Name of the table.
            is_archived: Whether the warehouse may be an archive.
            is_inaccessible: Whether the role may require another external ID than the warehouse sends.
        """
        tables = self._find_tables(tenant, warehouse)
        if tables is None:
            return None
        response = self.http.post(tables, json={"name": name, "schema": SCHEMA})
        if is_expected_refusal(response, is_archived=is_archived, is_inaccessible=is_inaccessible):
            return None
        location: str = response.raise_for_status().json()["metadata-location"]
        return DataTable(tenant, warehouse, name, location.removeprefix("s3://").partition("/")[2])

    def has(self, table: DataTable, bucket: str) -> bool:
        """Return whether the catalog has a table, and the bucket its metadata file."""
        return self.lists(table) and self.has_metadata(table, bucket)

    def lists(self, table: DataTable) -> bool:
        """Return whether the catalog lists a table.

        Loading it also needs the warehouse's access to its storage. An `up` that is killed between a role's trust in a
        new external id and the warehouse's new credential leaves no access, until the next `up`, and loses nothing.
        """
        tables = self._find_tables(table.tenant, table.warehouse)
        if tables is None:
            return False
        response = self.http.get(tables)
        return response.is_success and table.name in {entry["name"] for entry in response.json()["identifiers"]}

    def find_access_problem(self, tenant: str, warehouse: str) -> str | None:
        """Return why a warehouse refuses a new table in namespace `results`; None with access, or if either is missing.

        The table is staged: it has no file, and no list has it. Servers keep credentials for existing tables for a
        while.
        """
        tables = self._find_tables(tenant, warehouse)
        if tables is None:
            return None
        response = self.http.post(tables, json={"name": "staged", "schema": SCHEMA, "stage-create": True})
        return None if response.is_success or response.status_code == 404 else f"{response.status_code} {response.text}"

    def has_metadata(self, table: DataTable, bucket: str) -> bool:
        """Return whether a bucket has the metadata file of a table."""
        try:
            self.s3.head_object(Bucket=bucket, Key=table.key)
        except self.s3.exceptions.ClientError:
            return False
        return True

    def _find_tables(self, tenant: str, warehouse: str) -> str | None:
        """Return the path of the tables in namespace `results` of a warehouse; None without the warehouse."""
        warehouses = self._list("/management/v1/warehouse", "warehouses", {"x-project-id": tenant})
        ids = [entry["warehouse-id"] for entry in warehouses if entry["name"] == warehouse]
        return f"/catalog/v1/{ids[0]}/namespaces/results/tables" if ids else None

    def _read_warehouse(self, warehouse: dict[str, Any]) -> dict[str, Any]:
        root = f"/catalog/v1/{warehouse['warehouse-id']}/namespaces"
        namespaces: dict[str, Any] = {}
        for (name,) in self.http.get(root).raise_for_status().json()["namespaces"]:
            tables = self.http.get(f"{root}/{name}/tables").raise_for_status().json()["identifiers"]
            properties = self.http.get(f"{root}/{name}").raise_for_status().json()["properties"]
            namespaces[name] = {"tables": sorted(table["name"] for table in tables), "properties": properties}
        return {key: value for key, value in warehouse.items() if key not in VOLATILE} | {"namespaces": namespaces}

    def _list(self, path: str, key: str, headers: dict[str, str]) -> list[dict[str, Any]]:
        response = self.http.get(path, headers=headers)
        if response.status_code == 404:
            return []
        return response.raise_for_status().json()[key]
