"""`lakewright-spark read`"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lakewright_spark.cli.options import ConfigFile, Warehouse, chosen_warehouse, load_config
from lakewright_spark.results.uris import ResultNamespaces, ResultUri


def read(
    address: Annotated[str, typer.Argument(help="As in vfs:///wh/NAME/wid/1/eid/1/runtimestatistics")],
    *,
    config: ConfigFile = None,
    warehouse: Warehouse = None,
    offset: Annotated[int, typer.Option(min=0)] = 0,
    limit: Annotated[int, typer.Option(min=0)] = 20,
    count: Annotated[bool, typer.Option("--count", help="Print how many rows there are, and read none.")] = False,
) -> None:
    """Print rows of a result, a JSON object a line, through PyIceberg."""
    from lakewright_spark.results.reader import ResultReader  # noqa: PLC0415  # pyarrow takes a second to load

    uri = ResultUri.parse(address)
    catalog = load_config(config)
    reader = ResultReader(
        catalog, chosen_warehouse(catalog, warehouse or uri.warehouse), ResultNamespaces.from_environment()
    )
    if count:
        print(reader.count(uri))
        return
    for row in reader.range(uri, offset, limit).to_pylist():
        print(json.dumps(row, default=str))
