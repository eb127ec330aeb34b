"""Policies of tables in a catalog: show, set and remove them through PyIceberg, after a check against the table."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic import ValidationError
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.policies.history_rules import history_mistakes
from lakewright_spark.policies.model import POLICIES, PREFIX, PoliciesInForce, TablePolicies
from lakewright_spark.policies.resolution import Resolved, property_name, resolve
from lakewright_spark.policies.retention_rules import retention_mistakes
from lakewright_spark.policies.server_queues import find_server_jobs
from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog
from lakewright_spark.pyiceberg_client.table_metadata import is_readable_only, load_metadata
from lakewright_spark.table_identifier import TableIdentifier


@dataclass(frozen=True)
class PolicyTables:
    """Policies of one warehouse's tables. Every method raises this package's errors before it changes anything."""

    config: CatalogConfig
    warehouse: str

    def show(self, table: TableIdentifier) -> Resolved:
        """Return the policies of the table and their sources."""
        with explain_errors(self.config, self.warehouse, f"table {table}"):
            live_table = load_metadata(self._catalog(), table.within)
        resolved = self.resolve_policies(table, live_table.properties)
        return replace(resolved, mistakes=tuple(find_mistakes(resolved.policies, live_table)))

    def resolve_policies(self, table: TableIdentifier, properties: dict[str, str]) -> Resolved:
        """Return the policies of a table with these properties, and the jobs that the catalog's server does itself."""
        try:
            resolved = resolve(table, properties, self.config.policies)
        except ValueError as error:
            raise PolicyRefusedError(f"table {table}: {format_error(error)}") from None
        server = self.config.warehouse(self.warehouse).server_jobs if self.config.kind == "lakekeeper" else ()
        server_properties = properties if self.config.kind == "lakekeeper" else {}
        values = {name: getattr(resolved.policies, name) for name in POLICIES}
        return replace(
            resolved,
            policies=PoliciesInForce.model_construct(
                **values, done_by_server=find_server_jobs(server, server_properties)
            ),
        )

    def set(self, table: TableIdentifier, policy: str, text: str) -> TablePolicies:
        """Set a policy of the table from JSON, and return the resulting policies."""
        key = self._key(policy)
        try:
            new_policies = TablePolicies.from_properties({key: text})
        except ValueError as error:
            raise PolicyRefusedError(format_error(error)) from None
        if not new_policies.properties():
            raise PolicyRefusedError(f"{policy}: expected a value, found null; use `policy unset` to remove it")
        with explain_errors(self.config, self.warehouse, f"table {table}"):
            live_table = load_metadata(self._catalog(), table.within)
            _check_can_change(table, live_table, f"SET TBLPROPERTIES ('{key}' = '...')")
            if mistakes := find_mistakes(new_policies, live_table):
                raise PolicyRefusedError(f"table {table}: {'; '.join(mistakes)}")
            with live_table.transaction() as changes:
                changes.set_properties(new_policies.properties())
        return self.resolve_policies(table, {**live_table.properties, **new_policies.properties()}).policies

    def unset(self, table: TableIdentifier, policy: str) -> bool:
        """Remove a policy of the table. Return False if it had none. Matching patterns apply from then on."""
        key = self._key(policy)
        with explain_errors(self.config, self.warehouse, f"table {table}"):
            live_table = load_metadata(self._catalog(), table.within)
            if key not in live_table.properties:
                return False
            _check_can_change(table, live_table, f"UNSET TBLPROPERTIES ('{key}')")
            with live_table.transaction() as changes:
                changes.remove_properties(key)
        return True

    def _catalog(self) -> Catalog:
        return open_catalog(self.config, self.warehouse)

    def _key(self, policy: str) -> str:
        try:
            return property_name(policy)
        except ValueError as error:
            raise PolicyRefusedError(f"there is no policy {policy!r}: {error}") from None


def _check_can_change(name: TableIdentifier, table: Table, change: str) -> None:
    if is_readable_only(table):
        raise PolicyRefusedError(
            f"table {name}: expected column types that PyIceberg can write, found a type such as variant; "
            f"change the property in Spark: ALTER TABLE {name.sql} {change}"
        )


def find_mistakes(policies: TablePolicies, table: Table) -> list[str]:
    """Return a sentence for each policy that does not suit the table's columns and partitions."""
    schema = table.schema()
    columns = {name: str(schema.find_type(name)) for name in schema.column_names}
    partitions = [
        (schema.find_column_name(field.source_id) or "", str(cast(Any, field).transform))
        for field in table.spec().fields
    ]
    mistakes = retention_mistakes(policies.retention, columns, partitions) if policies.retention else []
    if policies.history:
        mistakes = [*mistakes, *history_mistakes(policies.history, table.properties)]
    return [*mistakes, *policies.column_mistakes(schema.column_names)]


def to_json(resolved: Resolved) -> dict[str, dict[str, object]]:
    """Return value and source of each policy, for JSON."""
    properties = resolved.policies.properties()
    values = {key.removeprefix(PREFIX): json.loads(text) for key, text in properties.items()}
    sources: dict[str, dict[str, object]] = {
        name: {"value": value, "from": resolved.sources[name.replace("-", "_")]} for name, value in values.items()
    }
    by_server = resolved.policies.done_by_server if isinstance(resolved.policies, PoliciesInForce) else {}
    by_servers: dict[str, dict[str, object]] = {
        f"{job} by the server": {"value": True, "from": source} for job, source in by_server.items()
    }
    return sources | by_servers


def format_error(error: ValueError) -> str:
    """Return every problem of an error, without pydantic's frame."""
    if not isinstance(error, ValidationError):
        return str(error)
    problems = error.errors(include_url=False, include_input=False)
    return "; ".join(
        f"{'.'.join(str(step) for step in p['loc'])}: {p['msg'].removeprefix('Value error, ')}" for p in problems
    )
