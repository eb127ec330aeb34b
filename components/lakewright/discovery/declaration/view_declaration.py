"""A view of a spec from the metadata of a view. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakewright.discovery.declaration.table_declaration import declare_columns
from lakewright.field_map.arguments import build_args
from lakewright.field_map.read_back import read_fields
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.provider.diff import list_changes
from lakewright.lakekeeper.view.args import ViewArgs
from lakewright.lakekeeper.view.requests import current_schema, current_version, observe_view, read_sql
from lakewright.names.table_name import QualifiedName
from lakewright.spec.view import ViewSpec


def declare_view(warehouse: str, view: Tabular, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a view as a spec has it; only what is not a default.

    Raises:
        NotExpressibleError: Specs have no such view.
    """
    version = current_version(metadata)
    default_namespace: list[str] = version["default-namespace"]
    live: dict[str, Any] = {
        "full_name": str(QualifiedName(warehouse, view.namespace, view.name)),
        "columns": declare_columns(current_schema(metadata)["fields"]),
        "sql": read_sql(version),
        "default_catalog": version.get("default-catalog"),
        "default_namespace": None
        if tuple(default_namespace) == view.namespace
        else ".".join(default_namespace) or None,
        "properties": metadata.get("properties") or {},
        "protected": view.protected,
    }
    return read_fields(ViewSpec, live)


def find_view_differences(spec: ViewSpec, metadata: Mapping[str, Any]) -> list[str]:
    """Return what adopting a view with this declaration would change; empty if nothing."""
    args = ViewArgs(
        server=ServerRef(endpoint="http://unused"),
        warehouse_id="unused",
        namespace=".".join(spec.path.namespace),
        **build_args(spec),
    )
    live_args = observe_view(metadata, args).model_copy(update={"protected": args.protected})
    return [str(change) for change in list_changes(live_args, args)]
