"""The objects that stacks manage, from their states. Pure functions over resources of states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright.lakekeeper.api.connection.privileges import GrantEntry
from lakewright.validation.documents import as_list, as_mapping, as_text

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState

ObjectKey = tuple[str, ...]
"""Server or account, and the identity of an object on it. Names are in lower case, as servers ignore case."""

LAKEKEEPER = "pulumi-python:dynamic/lakekeeper:"
_AWS_BUCKETS = ("aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2")


@dataclass(frozen=True)
class ManagedObjects:
    """Keys of managed objects by kind: `project`, `warehouse`, `namespace`, `table`, `role`, `grant`, `bucket`, ..."""

    by_kind: Mapping[str, frozenset[ObjectKey]] = field(default_factory=dict[str, frozenset[ObjectKey]])

    def has(self, kind: str, key: ObjectKey) -> bool:
        """Return whether a stack manages an object."""
        return key in self.by_kind.get(kind, frozenset())


def collect_managed_objects(resources: Iterable[ResourceState]) -> ManagedObjects:
    """Return the objects of the resources of states."""
    keys_by_kind: dict[str, set[ObjectKey]] = {}
    for resource in resources:
        for kind, key in _keys(resource):
            keys_by_kind.setdefault(kind, set()).add(key)
    return ManagedObjects({kind: frozenset(keys) for kind, keys in keys_by_kind.items()})


def list_bucket_regions(resources: Iterable[ResourceState]) -> frozenset[str]:
    """Return the regions of the AWS buckets among the resources of states."""
    buckets = (resource.outputs for resource in resources if resource.type in _AWS_BUCKETS)
    regions = (as_text(outputs.get("bucketRegion")) or as_text(outputs.get("region")) for outputs in buckets)
    return frozenset(region for region in regions if region)


def server_key(endpoint: object) -> str:
    """Return an endpoint as the first part of a key."""
    return str(endpoint or "").rstrip("/").casefold()


def project_key(server: str, project_id: str) -> ObjectKey:
    """Return the key of a project."""
    return (server, project_id)


def inside_key(server: str, warehouse_id: str, levels: Iterable[str]) -> ObjectKey:
    """Return the key of a namespace or table in a warehouse."""
    return (server, warehouse_id, *(level.casefold() for level in levels))


def grant_key(server: str, kind: str, object_path: Iterable[str], entry: GrantEntry) -> ObjectKey:
    """Return the key of a grant.

    Args:
        server: Key of the server.
        kind: Kind of the object.
        object_path: Id of the project, warehouse or role, then the levels of namespace and table.
        entry: The grant.
    """
    return (server, kind, *(part.casefold() for part in object_path), entry.privilege, entry.kind, entry.principal)


def _keys(resource: ResourceState) -> Iterator[tuple[str, ObjectKey]]:
    inputs: Mapping[str, Any] = resource.inputs
    if resource.type.startswith(LAKEKEEPER):
        yield from _lakekeeper_keys(resource.type.removeprefix(LAKEKEEPER), resource.id or "", inputs)
        return
    match resource.type:
        case type_ if type_ in _AWS_BUCKETS:
            yield "bucket", (as_text(inputs.get("bucket")) or resource.id or "",)
        case "aws:iam/role:Role":
            yield "aws role", (as_text(inputs.get("name")) or resource.id or "",)
        case "kubernetes:core/v1:Namespace":
            name = as_text(as_mapping(inputs.get("metadata")).get("name"))
            yield "kubernetes namespace", (name or resource.id or "",)
        case _:
            return


def _lakekeeper_keys(kind: str, object_id: str, inputs: Mapping[str, Any]) -> Iterator[tuple[str, ObjectKey]]:
    server = server_key(as_mapping(inputs.get("server")).get("endpoint"))
    warehouse_id = str(inputs.get("warehouse_id") or "")
    match kind:
        case "Project":
            yield "project", project_key(server, str(inputs.get("project_id") or object_id))
        case "Warehouse":
            yield "warehouse", (server, object_id)
        case "Namespace":
            yield "namespace", inside_key(server, warehouse_id, str(inputs.get("name")).split("."))
        case "Table" | "View":  # they share the names of a namespace
            levels = [*str(inputs.get("namespace")).split("."), str(inputs.get("name"))]
            yield "table", inside_key(server, warehouse_id, levels)
        case "Role":
            yield "role", (server, object_id)
        case "RoleMembers":
            yield "role members", (server, str(inputs.get("role_id")))
        case "TaskQueueConfig":
            yield "task queue", (server, warehouse_id or str(inputs.get("project_id")), str(inputs.get("queue")))
        case "Grant":
            yield from _grant_keys(server, as_mapping(inputs.get("on")), [inputs])
        case "Grants":
            grants = [as_mapping(entry) for entry in as_list(inputs.get("grants"))]
            yield from _grant_keys(server, as_mapping(inputs.get("on")), grants)
        case "StoreBucket":
            yield "bucket", (str(inputs.get("bucket")),)
        case _:
            return


def _grant_keys(
    server: str, on: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, ObjectKey]]:
    kind = str(on.get("type"))
    object_path = (
        [str(on["project_id"])] if kind == "project" else [str(on.get("warehouse_id") or on.get("role_id") or "")]
    )
    if namespace := on.get("namespace"):
        object_path += str(namespace).split(".")
    if kind in {"table", "view", "generic-table"}:
        object_path.append(str(on.get("name")))
    for entry in entries:
        user, role = entry.get("user"), entry.get("role")
        grant = GrantEntry(str(entry.get("privilege")), "user" if user else "role", str(user or role))
        yield "grant", grant_key(server, kind, object_path, grant)
