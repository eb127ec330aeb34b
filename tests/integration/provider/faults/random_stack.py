"""A stack of providers as an engine runs it, changes outside the stack, and the comparison with a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import httpx
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from pulumi.dynamic import ResourceProvider

from tests.integration.provider.faults import random_tables
from tests.integration.provider.resource import Props, Resource

Key = tuple[str, str]
"""Kind and slot."""

ORDER = ("project", "user", "role", "warehouse", "namespace", "table")


@dataclass
class DeclaredObject:
    """A declared object: its own properties, the object that it needs, and properties that are ids of others."""

    provider: Callable[[], ResourceProvider]
    props: Props
    needs: Key | None = None
    made_in: dict[str, Key] = field(default_factory=dict)


Declarations = dict[Key, DeclaredObject]


class Managed(Resource):
    """A resource as an engine keeps it. A replacement that fails half-way leaves nothing."""

    def up(self, **props: Any) -> str:
        operation, _ = self._step(props)
        if operation == "replace":
            self.destroy()
        return super().up(**props)


class OperatedStack:
    """The state of a stack, and the operations on it."""

    def __init__(self, server: Props) -> None:
        self._server = server
        self._unfinished: set[Key] = set()
        """Objects whose creation failed half-way with the advice to declare `adopt`."""
        self._state: dict[Key, Managed] = {}

    def has(self, key: Key) -> bool:
        """Return whether the state has the object."""
        return key in self._state and bool(self._state[key].id)

    def resources(self) -> dict[Key, Managed]:
        """Return the resources of the state."""
        return {key: resource for key, resource in self._state.items() if resource.id}

    def up(self, declarations: Declarations) -> None:
        """Run `up --refresh`: read everything, create and update the declared objects, delete all other objects."""
        for resource in self._state.values():
            if resource.id:
                resource.refresh()
        for key in sorted(declarations, key=_rank):
            declaration = declarations[key]
            resource = self._state.setdefault(key, Managed(declaration.provider()))
            ids = {name: self._state[other].id for name, other in declaration.made_in.items()}
            adopt = {"adopt": True} if key in self._unfinished else {}
            try:
                resource.up(server=self._server, **declaration.props, **ids, **adopt)
            except LakekeeperError as error:
                if "needs `adopt`" in str(error):
                    self._unfinished.add(key)
                raise
            self._unfinished.discard(key)
        for key in sorted(self._state.keys() - declarations.keys(), key=_rank, reverse=True):
            if self._state[key].id:
                self._state[key].destroy()
            del self._state[key]

    def drifts(
        self, http: httpx.Client, key: Key, declaration: DeclaredObject, name: str
    ) -> dict[str, Callable[[], None]]:
        """Return the changes that another user could make to an object, by name."""
        object_id = self._state[key].id
        project = {"x-project-id": str(declaration.props.get("project_id", ""))}

        def call(method: str, path: str, body: Props | None = None) -> Callable[[], None]:
            return lambda: _check_response(http.request(method, path, json=body, headers=project))

        match key[0]:
            case "project":
                return {"rename": call("POST", "/management/v1/project/rename", {"new-name": f"{name} too"})}
            case "user":
                return {"delete": call("DELETE", f"/management/v1/user/{object_id}")}
            case "role":
                body = {"name": f"{name}-too", "description": "of another"}
                path = f"/management/v1/role/{object_id}"
                return {"change": call("POST", path, body), "delete": call("DELETE", path)}
            case "warehouse":
                path = f"/management/v1/warehouse/{object_id}"
                return {
                    "rename": call("POST", f"{path}/rename", {"new-name": f"{name}-too"}),
                    "soft": call(
                        "POST", f"{path}/delete-profile", {"delete-profile": {"type": "soft", "expiration-seconds": 7}}
                    ),
                    "protect": call("POST", f"{path}/protection", {"protected": not declaration.props["protected"]}),
                    "deactivate": call("POST", f"{path}/deactivate"),
                    "forget the key": call("POST", f"{path}/storage-credential", {"new-storage-credential": None}),
                    "delete": lambda: _delete_warehouse(http, object_id),
                }
            case "table":
                warehouse = self._state[declaration.made_in["warehouse_id"]].id
                return random_tables.Jobs(http, warehouse, self._state[key].outs).drifts()
            case _:
                warehouse = self._state[declaration.made_in["warehouse_id"]].id
                path = f"/catalog/v1/{warehouse}/namespaces/{declaration.props['name'].replace('.', '%1F')}"
                changes = {"updates": {"owner": "of another"}, "removals": ["team"]}
                return {
                    "properties": call("POST", f"{path}/properties", changes),
                    "drop": call("DELETE", f"{path}?force=true&recursive=true"),
                }


def sort_by_creation(keys: Iterable[Key]) -> list[Key]:
    """Return keys in the order in which their objects are created."""
    return sorted(keys, key=_rank)


def _rank(key: Key) -> tuple[int, int, Key]:
    return ORDER.index(key[0]), key[1].count("."), key


def _check_response(response: httpx.Response) -> None:
    """Accept also a deleted object, and an object that cannot be changed now."""
    assert response.is_success or response.status_code in (404, 409, 503), response.text


def _delete_warehouse(http: httpx.Client, warehouse: str) -> None:
    root = f"/catalog/v1/{warehouse}/namespaces"
    response = http.get(root)
    for name, *_ in response.json()["namespaces"] if response.is_success else ():
        _check_response(http.delete(f"{root}/{name}?force=true&recursive=true"))
    _check_response(http.delete(f"/management/v1/warehouse/{warehouse}?force=true"))


def expect_server_objects(declarations: Declarations) -> Props:
    """Return the objects that the server must hold, by key."""
    return {key: _to_json(key[0], declaration.props) for key, declaration in sorted(declarations.items())}


def _to_json(kind: str, props: Props) -> Props:
    if kind == "role":
        return {"name": props["name"], "description": props["description"] or None}
    if kind == "table":
        return random_tables.expect_table(props)
    keys = {
        "project": ("name",),
        "user": ("name",),
        "namespace": ("properties", "protected"),
    }
    if kind in keys:
        return {key: props.get(key) for key in keys[kind]}
    return {
        "name": props["name"],
        "prefix": props["storage"]["key_prefix"],
        "project": props["project_id"],
        "credential": props["credential"]["type"] if props["credential"] else None,
        "delete_profile": props["delete_profile"],
        "protected": props["protected"],
        "versions": props["allowed_format_versions"],
        "status": "active",
    }


def read_server_objects(http: httpx.Client, tag: str) -> Props:
    """Return a stack's objects on the server: all objects with its tag, by key."""
    objects: Props = {}
    users = http.get("/management/v1/user?pageSize=1000").raise_for_status().json()["users"]
    for user in users:
        if user["id"].startswith(f"oidc~{tag}-"):
            objects["user", user["id"].rpartition("-")[2]] = {"name": user["name"]}
    for project in http.get("/management/v1/project-list").raise_for_status().json()["projects"]:
        if project["project-id"].startswith(f"{tag}-"):
            slot = project["project-id"].rpartition("-")[2]
            objects["project", slot] = {"name": project["project-name"]}
            objects |= _read_project_objects(http, project["project-id"], slot)
    return dict(sorted(objects.items()))


def _read_project_objects(http: httpx.Client, project: str, slot: str) -> Props:
    objects: Props = {}
    project_header = {"x-project-id": project}
    for role in http.get("/management/v1/role", headers=project_header).raise_for_status().json()["roles"]:
        assert ("role", slot) not in objects, "two roles in a slot"
        objects["role", slot] = {"name": role["name"], "description": role.get("description")}
    both_statuses = {"warehouseStatus": ["active", "inactive"]}
    warehouses = (
        http.get("/management/v1/warehouse", params=both_statuses, headers=project_header)
        .raise_for_status()
        .json()["warehouses"]
    )
    for warehouse in warehouses:
        prefix = warehouse["storage-profile"]["key-prefix"]
        name = prefix.split("/")[1]
        assert ("warehouse", name) not in objects, "two warehouses in a slot"
        objects["warehouse", name] = _warehouse(warehouse, prefix)
        objects |= _read_namespace_objects(http, warehouse["id"], name)
    return objects


def _warehouse(warehouse: Props, prefix: str) -> Props:
    return {
        "name": warehouse["name"],
        "prefix": prefix,
        "project": warehouse["project-id"],
        "credential": warehouse.get("storage-credential-type", {}).get("credential-type"),
        "delete_profile": {key.replace("-", "_"): value for key, value in warehouse["delete-profile"].items()},
        "protected": warehouse["protected"],
        "versions": warehouse["allowed-format-versions"],
        "status": warehouse["status"],
    }


def _read_namespace_objects(http: httpx.Client, warehouse: str, slot: str, parent: str = "") -> Props:
    root = f"/catalog/v1/{warehouse}/namespaces"
    params = {"parent": parent.replace(".", "\x1f")} if parent else {}
    objects: Props = {}
    for path in http.get(root, params=params).raise_for_status().json()["namespaces"]:
        namespace_url = f"{root}/{'%1F'.join(path)}"
        name = ".".join(path)
        response = http.get(f"{namespace_url}?returnUuid=true").raise_for_status().json()
        protection = http.get(f"/management/v1/warehouse/{warehouse}/namespace/{response['namespace-uuid']}/protection")
        properties = {
            key: value for key, value in response["properties"].items() if key not in ("location", "namespace_id")
        }
        objects["namespace", f"{slot}.{name}"] = {"properties": properties, "protected": protection.json()["protected"]}
        for table in random_tables.read_tables(http, warehouse, path):
            assert ("table", f"{slot}.{name}") not in objects, "two tables in a slot"
            objects["table", f"{slot}.{name}"] = table
        objects |= _read_namespace_objects(http, warehouse, slot, name)
    return objects
