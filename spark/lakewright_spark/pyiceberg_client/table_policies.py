"""The policies of tables in a catalog: read, set and taken away through PyIceberg, checked against the table first."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from pydantic import ValidationError
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.policies.history_rules import history_mistakes
from lakewright_spark.policies.model import POLICIES, PREFIX, PoliciesInForce, TablePolicies
from lakewright_spark.policies.resolution import Resolved, property_name, resolve
from lakewright_spark.policies.retention_rules import retention_mistakes
from lakewright_spark.policies.server_queues import done_by_server
from lakewright_spark.pyiceberg_client.catalog import explain_errors, open_catalog
from lakewright_spark.table_identifier import TableIdentifier


@dataclass(frozen=True)
class PolicyTables:
    """Policies of one warehouse's tables. Every method raises this package's errors, before anything is changed."""

    config: CatalogConfig
    warehouse: str

    def show(self, table: TableIdentifier) -> Resolved:
        """What holds for the table, and from where."""
        with explain_errors(self.config, self.warehouse, f"table {table}"):
            found = self._catalog().load_table(table.within)
        resolved = self.of(table, found.properties)
        return replace(resolved, mistakes=tuple(fitting(resolved.policies, found)))

    def of(self, table: TableIdentifier, properties: dict[str, str]) -> Resolved:
        """What holds for a table with these properties, and what the catalog's server does to it by itself."""
        try:
            found = resolve(table, properties, self.config.policies)
        except ValueError as error:
            raise PolicyRefusedError(f"table {table}: {told(error)}") from None
        server = self.config.warehouse(self.warehouse).server_jobs if self.config.kind == "lakekeeper" else ()
        known = properties if self.config.kind == "lakekeeper" else {}
        held = {name: getattr(found.policies, name) for name in POLICIES}
        return replace(
            found, policies=PoliciesInForce.model_construct(**held, done_by_server=done_by_server(server, known))
        )

    def set(self, table: TableIdentifier, policy: str, text: str) -> TablePolicies:
        """Give the table a policy of its own, from JSON; what holds for it then."""
        key = self._key(policy)
        try:
            given = TablePolicies.from_properties({key: text})
        except ValueError as error:
            raise PolicyRefusedError(told(error)) from None
        if not given.properties():
            raise PolicyRefusedError(f"{policy}: expected a value, found null; `policy unset` takes it away")
        with explain_errors(self.config, self.warehouse, f"table {table}"):
            found = self._catalog().load_table(table.within)
            if mistakes := fitting(given, found):
                raise PolicyRefusedError(f"table {table}: {'; '.join(mistakes)}")
            with found.transaction() as changes:
                changes.set_properties(given.properties())
        return self.of(table, {**found.properties, **given.properties()}).policies

    def unset(self, table: TableIdentifier, policy: str) -> bool:
        """Take a policy of the table's own away; False if it had none. What patterns say, holds from then on."""
        key = self._key(policy)
        with explain_errors(self.config, self.warehouse, f"table {table}"):
            found = self._catalog().load_table(table.within)
            if key not in found.properties:
                return False
            with found.transaction() as changes:
                changes.remove_properties(key)
        return True

    def _catalog(self) -> Catalog:
        return open_catalog(self.config, self.warehouse)

    def _key(self, policy: str) -> str:
        try:
            return property_name(policy)
        except ValueError as error:
            raise PolicyRefusedError(f"there is no policy {policy!r}: {error}") from None


def fitting(policies: TablePolicies, table: Table) -> list[str]:
    """What of the policies does not suit the table's columns and partitions, in sentences."""
    schema = table.schema()
    columns = {name: str(schema.find_type(name)) for name in schema.column_names}
    partitions = [(schema.find_column_name(one.source_id) or "", str(one.transform)) for one in table.spec().fields]
    mistakes = retention_mistakes(policies.retention, columns, partitions) if policies.retention else []
    if policies.history:
        mistakes = [*mistakes, *history_mistakes(policies.history, table.properties)]
    return [*mistakes, *policies.column_mistakes(schema.column_names)]


def shown(resolved: Resolved) -> dict[str, dict[str, object]]:
    """What holds, by policy: its value and where it is from; for JSON."""
    properties = resolved.policies.properties()
    values = {key.removeprefix(PREFIX): json.loads(text) for key, text in properties.items()}
    told = {name: {"value": value, "from": resolved.sources[name.replace("-", "_")]} for name, value in values.items()}
    by_server = resolved.policies.done_by_server if isinstance(resolved.policies, PoliciesInForce) else {}
    return told | {f"{job} by the server": {"value": True, "from": where} for job, where in by_server.items()}


def told(error: ValueError) -> str:
    """All that is wrong, without pydantic's frame."""
    if not isinstance(error, ValidationError):
        return str(error)
    problems = error.errors(include_url=False, include_input=False)
    return "; ".join(
        f"{'.'.join(str(step) for step in p['loc'])}: {p['msg'].removeprefix('Value error, ')}" for p in problems
    )
