"""`lakewright-spark policy show | set | unset`"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright_spark.catalog.loading import chosen_warehouse, load_config
from lakewright_spark.cli import printing
from lakewright_spark.cli.options import AsJson, ConfigFile, Warehouse
from lakewright_spark.table_identifier import TableIdentifier

if TYPE_CHECKING:
    from pathlib import Path

    from lakewright_spark.pyiceberg_client.table_policies import PolicyTables

app = typer.Typer(no_args_is_help=True, help="Show, set and take away what maintenance jobs do about a table.")

TableName = Annotated[str, typer.Argument(metavar="NAMESPACE.TABLE", help="A part with a dot in it in backquotes.")]
PolicyName = Annotated[str, typer.Argument(metavar="POLICY", help="retention, history, orphan-files, compaction, ..")]


@app.callback()
def _group() -> None:
    """Policies of tables: what maintenance jobs do about them."""


@app.command()
def show(table: TableName, *, config: ConfigFile = None, warehouse: Warehouse = None, as_json: AsJson = False) -> None:
    """Print what holds for a table, and whether its own properties say so or a pattern does."""
    from lakewright_spark.pyiceberg_client.table_policies import shown  # noqa: PLC0415  # loads PyIceberg

    tables, identifier = _tables(config, warehouse, table)
    resolved = tables.show(identifier)
    found = shown(resolved)
    if as_json:
        print(json.dumps({"table": str(identifier), "policies": found, "mistakes": list(resolved.mistakes)}))
        return
    listed = printing.columns("policy", "from", "value", fold=("from", "value"))
    for name, one in found.items():
        listed.add_row(name, str(one["from"]), json.dumps(one["value"]))
    printing.show(listed)
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
    """Give a table a policy of its own, which wins over patterns."""
    tables, identifier = _tables(config, warehouse, table)
    tables.set(identifier, policy, value)
    print(f"{identifier}: {policy} is set")


@app.command()
def unset(table: TableName, policy: PolicyName, *, config: ConfigFile = None, warehouse: Warehouse = None) -> None:
    """Take a table's own policy away; what patterns say holds from then on."""
    tables, identifier = _tables(config, warehouse, table)
    print(f"{identifier}: {policy} " + ("is unset" if tables.unset(identifier, policy) else "was not set"))


def _tables(config: Path | None, warehouse: str | None, table: str) -> tuple[PolicyTables, TableIdentifier]:
    from lakewright_spark.pyiceberg_client.table_policies import PolicyTables  # noqa: PLC0415  # loads PyIceberg

    catalog = load_config(config)
    name = chosen_warehouse(catalog, warehouse)
    return PolicyTables(catalog, name), TableIdentifier.parse(name, table)
