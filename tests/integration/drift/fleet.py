"""A project with the states of many tenants, whose objects are on a server."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.server.shared_project import SharedProjectProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.project_files.stack_files import DEFAULT_PROJECT_ID
from pulumi.dynamic import ResourceProvider

Props = dict[str, Any]
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = {SIGNATURE: "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:bm9uY2U=:c2VhbGVk"}
"""A secret that no passphrase decrypts."""


@dataclass
class TenantObjects:
    """The objects of a tenant, by name in the program."""

    name: str
    ids: dict[str, str] = field(default_factory=dict)
    resources: list[Props] = field(default_factory=list)

    def make(self, name: str, kind: str, provider: ResourceProvider, props: Props) -> str:
        """Create an object as an update does, and record it."""
        checked = provider.check({}, props)
        assert not checked.failures, [(failure.property, failure.reason) for failure in checked.failures]
        inputs = checked.inputs
        created = provider.create(inputs)
        self.ids[name] = str(created.id)
        type_ = f"pulumi-python:dynamic/lakekeeper:{kind}"
        state = {
            "urn": f"urn:pulumi:{self.name}::lake::{type_}::{name}",
            "custom": True,
            "id": created.id,
            "type": type_,
        }
        self.resources.append({**state, "inputs": inputs, "outputs": created.outs})
        return str(created.id)


class Fleet:
    """A project folder whose stacks are tenants."""

    def __init__(self, folder: Path, server: Props) -> None:
        self.folder, self._server = folder, server
        (folder / "Pulumi.yaml").write_text("name: lake\nruntime: python\nstackConfigDir: tenants\n")
        self.states = folder / ".lakewright" / "state" / ".pulumi" / "stacks" / "lake"
        for part in (folder / "tenants", folder / "environments", self.states):
            part.mkdir(parents=True)

    def add(
        self, name: str, *, secret: bool = False, roles: int = 1, shares_project: bool = False, **labels: str
    ) -> TenantObjects:
        """Create a tenant with a project, roles, a warehouse and a namespace, and write its state.

        With `shares_project` the tenant uses the default project, and its names begin with the tenant's name.
        """
        tenant = TenantObjects(name)
        prefix = f"{name}-" if shares_project else ""
        project_props = {"server": self._server, "project_id": DEFAULT_PROJECT_ID if shares_project else name}
        if shares_project:
            tenant.make("project", "SharedProject", SharedProjectProvider(), project_props)
        else:
            tenant.make("project", "Project", ProjectProvider(), {**project_props, "name": name})
        for role in ("readers", *(f"role{number}" for number in range(1, roles))):
            role_props = {**project_props, "name": f"{prefix}{role}", "description": "may read"}
            tenant.make(role, "Role", RoleProvider(), role_props)
        storage = {"bucket": "lake", "key_prefix": name, "region": "eu-west-1"}
        credential = {"type": "aws-system-identity", "external_id": "hidden-id-of-a-role"}
        storage |= {"assume_role_arn": "arn:aws:iam::111122223333:role/x"}
        props = {**project_props, "name": f"{prefix}main", "protected": False}
        props |= {"storage": storage, "credential": credential}
        warehouse = tenant.make("main", "Warehouse", WarehouseProvider(), props)
        if secret:
            for part in ("inputs", "outputs"):
                tenant.resources[-1][part]["credential"]["external_id"] = SECRET
        namespace_props = {
            "server": self._server,
            "warehouse_id": warehouse,
            "name": "sales",
            "properties": {"owner": "x"},
        }
        tenant.make("sales", "Namespace", NamespaceProvider(), namespace_props)
        self.write(tenant.name, tenant.resources)
        spec = {"name": name, "environment": "test", "labels": labels}
        (self.folder / "tenants" / f"Pulumi.{name}.yaml").write_text(
            yaml.safe_dump({"config": {"lakewright:tenant": spec}})
        )
        return tenant

    def write(self, stack: str, resources: Sequence[Props], version: int = 3) -> None:
        """Write the state of a stack."""
        providers = {"type": "passphrase", "state": {"salt": "v1:AAAAAAAAAAA=:v1:AAAAAAAAAAAAAAAA:AAAA"}}
        latest = {"manifest": {}, "secrets_providers": providers, "resources": resources}
        state = {"version": version, "checkpoint": {"stack": f"organization/lake/{stack}", "latest": latest}}
        (self.states / f"{stack}.json").write_text(json.dumps(state))


def change(http: httpx.Client, path: str, body: Props, project: str = "") -> None:
    """Change an object as another user."""
    http.post(f"/management/v1/{path}", json=body, headers={"x-project-id": project}).raise_for_status()
