"""Commands `policy show`, `policy set` and `policy unset`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright_spark.catalog.loading import choose_warehouse, load_config
from lakewright_spark.cli import printing
from lakewright_spark.cli.options import AsJson, ConfigFile, Warehouse
from lakewright_spark.plain_help import PlainHelpTyper
from lakewright_spark.table_identifier import TableIdentifier

if TYPE_CHECKING:
    from pathlib import Path

    from lakewright_spark.pyiceberg_client.table_policies import PolicyTables

app = PlainHelpTyper(no_args_is_help=True, help="Show, set and remove table policies.")

TableName = Annotated[
    str, typer.Argument(metavar="NAMESPACE.TABLE", help="Put a part that contains a dot in backquotes.")
]
PolicyName = Annotated[str, typer.Argument(metavar="POLICY", help="retention, history, orphan-files, compaction, ..")]


@app.callback()
def _group() -> None:
    """Show, set and remove table policies."""


@app.command()
def show(table: TableName, *, config: ConfigFile = None, warehouse: Warehouse = None, as_json: AsJson = False) -> None:
    """Print the policies of a table and the source of each.

    Example: lakewright-spark policy show results.orders
    """
    from lakewright_spark.pyiceberg_client.table_policies import to_json  # noqa: PLC0415  # loads PyIceberg

    tables, identifier = _tables(config, warehouse, table)
    resolved = tables.show(identifier)
    policies = to_json(resolved)
    if as_json:
        print(json.dumps({"table": str(identifier), "policies": policies, "mistakes": list(resolved.mistakes)}))
        return
    rows = printing.columns("policy", "from", "value", fold=("from", "value"))
    for name, policy in policies.items():
        rows.add_row(name, str(policy["from"]), json.dumps(policy["value"]))
    printing.show(rows)
    for mistake in resolved.mistakes:
        printing.complain(f"does not suit the table: {mistake}")


@app.command("set")
def set_policy(
    table: TableName,
    policy: PolicyName,
    value: Annotated[str, typer.Argument(metavar="JSON", help='As in {"keep": 30, "unit": "day", "column": "day"}')],
    *,
    config: ConfigFile = None,
    warehouse: Warehouse = None,
) -> None:
    """Set a policy of a table, which overrides patterns.

    Example: lakewright-spark policy set results.orders retention '{"keep": 30, "unit": "day", "column": "day"}'
    """
    tables, identifier = _tables(config, warehouse, table)
    tables.set(identifier, policy, value)
    print(f"{identifier}: {policy} is set")


@app.command()
def unset(table: TableName, policy: PolicyName, *, config: ConfigFile = None, warehouse: Warehouse = None) -> None:
    """Remove a policy of a table. Matching patterns apply from then on.

    Example: lakewright-spark policy unset results.orders retention
    """
    tables, identifier = _tables(config, warehouse, table)
    print(f"{identifier}: {policy} " + ("is unset" if tables.unset(identifier, policy) else "was not set"))


def _tables(config: Path | None, warehouse: str | None, table: str) -> tuple[PolicyTables, TableIdentifier]:
    from lakewright_spark.pyiceberg_client.table_policies import PolicyTables  # noqa: PLC0415  # loads PyIceberg

    catalog = load_config(config)
    name = choose_warehouse(catalog, warehouse)
    return PolicyTables(catalog, name), TableIdentifier.parse(name, table)
