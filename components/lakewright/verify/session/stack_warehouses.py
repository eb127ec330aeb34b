"""Read the warehouses of a tenant, and other tenants, from the states of the project's stacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakewright.project_files.servers import is_same_url
from lakewright.storage.live_storage import is_in_s3, is_on_aws
from lakewright.validation.documents import as_list, as_mapping

if TYPE_CHECKING:
    from lakewright_engine.state.backend import StateBackend

_WAREHOUSE = "pulumi-python:dynamic/lakekeeper:Warehouse"
_TABLE = "pulumi-python:dynamic/lakekeeper:Table"


@dataclass(frozen=True)
class DeclaredTable:
    """A table in the state of a stack."""

    namespace: str
    name: str
    table_id: str
    location: str
    """`s3://BUCKET/PREFIX`."""


@dataclass(frozen=True)
class StackWarehouse:
    """A warehouse in the state of a stack."""

    stack: str
    project_id: str
    name: str
    warehouse_id: str
    endpoint: str
    """Address of the Lakekeeper server."""
    bucket: str
    key_prefix: str
    store: str
    """Endpoint of the store; empty for AWS, Azure and Google."""
    region: str = "us-east-1"
    role_arns: tuple[str, ...] = ()
    """Roles on AWS that the catalog assumes."""
    tables: tuple[DeclaredTable, ...] = ()
    """Tables that the stack declares."""
    server_id: str = ""
    """Id of the Lakekeeper server, which does not depend on its address; empty in states of older versions."""
    shares_project: bool = False
    """Whether its project contains warehouses of several tenants."""
    service: str = "s3"
    """Type of its storage: `s3`, `adls` or `gcs`."""

    @property
    def tenant(self) -> str:
        """The tenant for messages: its project, or its stack if several tenants share the project."""
        return self.stack if self.shares_project else self.project_id


def read_stack_warehouses(backend: StateBackend, project: str, stack: str) -> list[StackWarehouse]:
    """Return the warehouses in a stack's state."""
    deployment = as_mapping(backend.export(project, stack).get("deployment"))
    return [*_list_warehouses(stack, as_list(deployment.get("resources")))]


@dataclass(frozen=True)
class OtherTenants:
    """The project's other stacks."""

    warehouses: tuple[StackWarehouse, ...] = ()
    """Their warehouses."""
    unread: tuple[str, ...] = ()
    """Stacks whose warehouses are not known, each with the reason."""


def read_other_tenants(backend: StateBackend, project: str, stack: str) -> OtherTenants:
    """Return the other tenants. A state that cannot be read hides no other tenant."""
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415 - `--help` needs no engine

    warehouses: list[StackWarehouse] = []
    unread: list[str] = []
    for summary in backend.stacks(project):
        if summary.name == stack:
            continue
        try:
            stack_warehouses = read_stack_warehouses(backend, project, summary.name)
        except EngineError as error:
            unread.append(f"stack {summary.name}: its state cannot be read: {error}")
            continue
        warehouses += stack_warehouses
        if not stack_warehouses:
            unread.append(f"stack {summary.name}: its state has no warehouse")
    return OtherTenants(tuple(warehouses), tuple(unread))


def is_same_server(warehouse: StackWarehouse, stack_warehouses: Sequence[StackWarehouse], endpoint: str) -> bool:
    """Return whether a warehouse is on the server of other warehouses, or on the server at an address.

    A server may have several addresses, such as the address of a port-forward; its id does not depend on them.
    """
    ids = {stack_warehouse.server_id for stack_warehouse in stack_warehouses if stack_warehouse.server_id}
    return warehouse.server_id in ids or is_same_url(warehouse.endpoint, endpoint)


def is_same_store(warehouse: StackWarehouse, other: StackWarehouse) -> bool:
    """Return whether two warehouses are on one S3 store; AWS is one store."""
    if not warehouse.service == other.service == "s3":
        return False
    return warehouse.store == other.store or is_same_url(warehouse.store, other.store)


def _list_warehouses(stack: str, resources: list[Any]) -> Iterator[StackWarehouse]:
    tables = [as_mapping(part.get("outputs")) for part in map(as_mapping, resources) if part.get("type") == _TABLE]
    for resource in map(as_mapping, resources):
        if resource.get("type") != _WAREHOUSE or resource.get("delete") or not resource.get("id"):
            continue
        outputs = as_mapping(resource.get("outputs"))
        storage, server = as_mapping(outputs.get("storage")), as_mapping(outputs.get("server"))
        # Roles of other stores are not in IAM.
        has_roles = is_in_s3(storage) and is_on_aws(storage)
        roles = [storage.get(name) for name in ("assume_role_arn", "sts_role_arn") if has_roles]
        yield StackWarehouse(
            stack,
            str(outputs.get("project_id") or ""),
            str(outputs.get("name")),
            str(resource["id"]),
            str(server.get("endpoint") or "").rstrip("/"),
            str(storage.get("bucket") or storage.get("filesystem")),
            str(storage.get("key_prefix") or ""),
            str(storage.get("endpoint") or "").rstrip("/"),
            str(storage.get("region") or "us-east-1"),
            tuple(dict.fromkeys(role for role in roles if isinstance(role, str))),
            tuple(_parse_table(table) for table in tables if table.get("warehouse_id") == resource["id"]),
            str(outputs.get("server_id") or ""),
            shares_project=bool(outputs.get("record")),
            service=str(storage.get("type") or "s3"),
        )


def _parse_table(outputs: Mapping[str, Any]) -> DeclaredTable:
    values = (str(outputs.get(name) or "") for name in ("namespace", "name", "table_id", "table_location"))
    return DeclaredTable(*values)
