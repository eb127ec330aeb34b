"""The scope of a tenant on a Lakekeeper: its project, and the objects that its stack manages. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakewright.discovery.listing.managed_objects import LAKEKEEPER, ManagedObjects, collect_managed_objects
from lakewright.drift.session import StackResource
from lakewright.lakekeeper.api.connection.privileges import Object
from lakewright.validation.documents import as_mapping, as_text


@dataclass(frozen=True)
class ScopedObject:
    """A managed object whose grants are in the scope."""

    on: Object
    name: str
    """Kind and name, for display."""
    inside: tuple[str, ...] = ()
    """Levels of the namespace, and for a table its name at the end."""


@dataclass
class TenantScope:
    """One project of one stack."""

    stack: str
    tenant: str
    server: Mapping[str, Any]
    """The `server` of its resources: address, project and references."""
    project_id: str
    managed: ManagedObjects
    warehouses: dict[str, str] = field(default_factory=dict[str, str])
    """Names of the stack's warehouses by id."""
    namespaces: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """Ids of the stack's namespaces by warehouse id and dotted name."""
    declares_protection: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Namespaces whose protection the stack declares."""
    tables: dict[tuple[str, str, str], str] = field(default_factory=dict[tuple[str, str, str], str])
    """Ids of the stack's tables by warehouse id, namespace and name."""
    roles: dict[str, str] = field(default_factory=dict[str, str])
    """Names of the stack's roles by id."""
    shares_project: bool = False
    """Whether the project contains warehouses of other tenants. Then only objects in the stack's own are searched."""
    closed: set[str] = field(default_factory=set[str])
    """Ids of objects whose grants `Grants` declares completely: other grants are a change of that resource."""

    def list_scoped_objects(self) -> list[ScopedObject]:
        """Return the objects whose grants are in the scope."""
        scoped_objects: list[ScopedObject] = []
        if not self.shares_project:
            project = Object("project", project_id=self.project_id)
            scoped_objects.append(ScopedObject(project, f"project {self.project_id}"))
        for warehouse_id, name in self.warehouses.items():
            on = Object("warehouse", project_id=self.project_id, warehouse_id=warehouse_id)
            scoped_objects.append(ScopedObject(on, f"warehouse {name}"))
        for (warehouse_id, path), object_id in self.namespaces.items():
            on = Object("namespace", object_id, project_id=self.project_id, warehouse_id=warehouse_id)
            name = f"namespace {self.warehouses.get(warehouse_id, warehouse_id)}.{path}"
            scoped_objects.append(ScopedObject(on, name, tuple(path.split("."))))
        for (warehouse_id, path, table), object_id in self.tables.items():
            on = Object("table", object_id, project_id=self.project_id, warehouse_id=warehouse_id)
            name = f"table {self.warehouses.get(warehouse_id, warehouse_id)}.{path}.{table}"
            scoped_objects.append(ScopedObject(on, name, (*path.split("."), table)))
        return [
            scoped_object
            for scoped_object in scoped_objects
            if scoped_object.on.identity and scoped_object.on.identity not in self.closed
        ]


def find_tenant_scopes(resources: Iterable[StackResource]) -> list[TenantScope]:
    """Return the scopes of the stacks that manage a project."""
    by_stack: dict[str, list[StackResource]] = {}
    for resource in resources:
        if resource.state.type.startswith(LAKEKEEPER):
            by_stack.setdefault(resource.stack, []).append(resource)
    return [scope for stack_resources in by_stack.values() for scope in _create_scopes(stack_resources)]


def _create_scopes(stack_resources: Sequence[StackResource]) -> list[TenantScope]:
    managed = collect_managed_objects(resource.state for resource in stack_resources)
    scopes = [
        TenantScope(
            resource.stack,
            resource.tenant,
            as_mapping(resource.state.inputs.get("server")),
            as_text(resource.state.inputs.get("project_id")) or resource.state.id,
            managed,
            shares_project=_kind(resource) == "SharedProject",
        )
        for resource in stack_resources
        if _kind(resource) in {"Project", "SharedProject"}
    ]
    if len(scopes) != 1:
        # States do not say which of several projects an object belongs to.
        return [scope for scope in scopes if scope.project_id]
    (scope,) = scopes
    for resource in stack_resources:
        _add(scope, resource)
    return [scope]


def _add(scope: TenantScope, resource: StackResource) -> None:
    state, inputs = resource.state, resource.state.inputs
    warehouse_id = as_text(inputs.get("warehouse_id")) or ""
    match _kind(resource):
        case "Warehouse":
            scope.warehouses[state.id] = str(inputs.get("name"))
        case "Namespace":
            key = (warehouse_id, str(inputs.get("name")))
            scope.namespaces[key] = as_text(state.outputs.get("namespace_id")) or ""
            if inputs.get("protected") is not None:
                scope.declares_protection.add(key)
        case "Table":
            table_key = (warehouse_id, str(inputs.get("namespace")), str(inputs.get("name")))
            scope.tables[table_key] = as_text(state.outputs.get("table_id")) or ""
        case "Role":
            scope.roles[state.id] = str(inputs.get("name"))
        case "Grants":
            on = as_mapping(inputs.get("on"))
            scope.closed.add(str(on.get("warehouse_id") or on.get("project_id") or ""))
        case _:
            return


def _kind(resource: StackResource) -> str:
    return resource.state.type.removeprefix(LAKEKEEPER)
