"""Find protected objects that a `destroy` or an `up` would delete, before it deletes anything."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from lakewright.lakekeeper.api.catalog import contents, namespaces, tabulars
from lakewright.lakekeeper.api.catalog.namespaces import Path
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import NotFoundError, ProtectedError
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.preflight import warehouse_contents
from lakewright.lakekeeper.provider.errors import CannotCountError
from lakewright.lakekeeper.tenant.tenant_history import RecordedWarehouse, Warehouses, find_origin
from lakewright.names.table_name import parse_parts
from lakewright.names.types import namespace_parts


class GuardedObjects(Protocol):
    """Fields of a deletion guard that name the objects that a destruction deletes."""

    @property
    def warehouses(self) -> Mapping[str, str]:
        """Ids of the warehouses with `deletion: protect`, by name."""
        ...

    @property
    def declared(self) -> Mapping[str, str] | None:
        """Ids of all warehouses of the stack, by name."""
        ...

    @property
    def purged_warehouses(self) -> Sequence[str] | None:
        """Names of the warehouses with `deletion: purge`; None in a state of an earlier version."""
        ...

    @property
    def purged_tables(self) -> Mapping[str, Sequence[Sequence[str]]] | None:
        """Tables with `deletion: purge` in retained warehouses, by warehouse name."""
        ...


def find_at_destruction(client: Client, guarded: GuardedObjects, uncounted: list[str]) -> list[str]:
    """Describe the protected objects that a destruction would delete under `deletion: purge`.

    Args:
        client: Client of the server.
        guarded: The guard in the state.
        uncounted: Receives the reasons why a warehouse cannot be checked.
    """
    ids = guarded.declared or {}
    # A state of an earlier version does not tell `purge` from `retain`, so both are checked.
    purged = guarded.purged_warehouses
    names = [name for name in ids if name not in guarded.warehouses] if purged is None else purged
    reasons: list[str] = []
    for name in sorted(names):
        try:
            reasons += warehouse_contents.find_protected(client, ids[name], name)
        except CannotCountError as error:
            uncounted.append(str(error))
    for name, removed in sorted((guarded.purged_tables or {}).items()):
        reasons += _find_protected_tables(client, ids[name], name, [(*levels,) for levels in removed])
    return reasons


def refuse_removal(
    client: Callable[[], Client], project_id: str, before: Warehouses, declared_warehouses: Warehouses
) -> None:
    """Raise if the spec no longer declares an object that is protected, or that contains protected objects.

    The server is asked only about objects that leave the spec and whose `deletion` in the state deletes them.

    Args:
        client: Returns a client of the server that has the objects.
        project_id: Id of the tenant's project.
        before: Warehouses of the record in the state.
        declared_warehouses: Warehouses of the spec, each with its origin.

    Raises:
        CannotCountError: A warehouse is inactive.
        ProtectedError: An object that leaves the spec is protected.
    """
    by_origin = {find_origin(name, warehouse): warehouse for name, warehouse in declared_warehouses.items()}
    reasons: list[str] = []
    for name, earlier in sorted(before.items()):
        after = by_origin.get(find_origin(name, earlier))
        leaving_tables = _find_leaving_tables(earlier, after)
        leaving_namespaces = _find_leaving_namespaces(earlier, after)
        is_deleted = after is None and earlier.deletion != "retain"
        if not (is_deleted or leaving_tables or leaving_namespaces):
            continue
        live_warehouse = warehouses.find_by_name(client(), project_id, name)
        if live_warehouse is None:
            continue
        warehouse_id = warehouses.read_id(live_warehouse)
        if is_deleted:
            reasons += warehouse_contents.find_protected(client(), warehouse_id, name)
            continue
        for path in leaving_namespaces:
            reasons += _find_protected_in_namespace(client(), warehouse_id, name, path)
        # A namespace that leaves the spec is checked with the tables in it.
        remaining_tables = [levels for levels in leaving_tables if levels[:-1] not in leaving_namespaces]
        reasons += _find_protected_tables(client(), warehouse_id, name, remaining_tables)
    if reasons:
        raise ProtectedError(
            "the spec no longer declares objects that are protected, or that contain protected objects. Nothing was"
            f" changed: {'; '.join(reasons)}. Restore them in the spec, or remove the protection and run `up` again."
        )


def _find_leaving_tables(earlier: RecordedWarehouse, after: RecordedWarehouse | None) -> list[Path]:
    declared_names = [*(after.tables or {}), *(after.renamed_tables or [])] if after else []
    stay = {name.casefold() for name in declared_names}
    return [
        (*parse_parts(name),)
        for name, deletion in sorted((earlier.tables or {}).items())
        if deletion == "purge" and name.casefold() not in stay
    ]


def _find_leaving_namespaces(earlier: RecordedWarehouse, after: RecordedWarehouse | None) -> list[Path]:
    if after is None or earlier.deletion == "retain":
        return []
    stay = {name.casefold() for name in after.namespaces or []}
    return [(*namespace_parts(name),) for name in earlier.namespaces or [] if name.casefold() not in stay]


def _find_protected_in_namespace(client: Client, warehouse_id: str, warehouse: str, path: Path) -> list[str]:
    live_namespace = namespaces.get(client, warehouse_id, path)
    if live_namespace is None:
        return []
    title = f"at {client.endpoint} namespace `{'.'.join(path)}` of warehouse `{warehouse}`"
    reasons: list[str] = []
    if namespaces.is_protected(client, warehouse_id, namespaces.read_id(live_namespace)):
        reasons.append(f"{title} is protected")
    if inside := contents.read_namespace(client, warehouse_id, path).protected:
        reasons.append(f"{title} holds protected objects: {', '.join(inside)}")
    return reasons


def _find_protected_tables(client: Client, warehouse_id: str, warehouse: str, removed: Iterable[Path]) -> list[str]:
    """Describe the protected tables among the removed tables. A namespace's list shows the protection of all tables."""
    by_namespace: dict[Path, set[str]] = {}
    for levels in removed:
        by_namespace.setdefault(levels[:-1], set()).add(levels[-1].casefold())
    return [
        f"at {client.endpoint} table `{table}` of warehouse `{warehouse}` is protected"
        for namespace, names in sorted(by_namespace.items())
        for table in _list_tables(client, warehouse_id, namespace)
        if table.protected and table.name.casefold() in names
    ]


def _list_tables(client: Client, warehouse_id: str, namespace: Path) -> list[Tabular]:
    try:
        return [*tabulars.list_kind(client, warehouse_id, namespace, "table")]
    except NotFoundError:
        return []
