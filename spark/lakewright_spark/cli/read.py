"""`lakewright-spark read`"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright_spark.cli.options import ConfigFile, RegistryIfNamed, Warehouse, load_config, open_registry
from lakewright_spark.result_uris import ResultNamespaces, ResultUri

if TYPE_CHECKING:
    from pyarrow import Table


def read(
    address: Annotated[str, typer.Argument(help="As in vfs:///wh/NAME/wid/1/eid/1/runtimestatistics")],
    *,
    config: ConfigFile = None,
    warehouse: Warehouse = None,
    registry: RegistryIfNamed = None,
    offset: Annotated[int, typer.Option(min=0)] = 0,
    limit: Annotated[int, typer.Option(min=0)] = 20,
    after: Annotated[str | None, typer.Option(help="A cursor of an earlier answer, or `start`.")] = None,
    count: Annotated[bool, typer.Option("--count", help="Print how many rows there are, and read none.")] = False,
) -> None:
    """Print rows of a result, a JSON object a line, through PyIceberg. With --after, the cursor is the last line.

    The warehouse is the address's; else --warehouse; else the execution's in the registry, if one is named; else the
    only one.
    """
    from lakewright_spark.results.reader import Cursor, ResultReader  # noqa: PLC0415  # pyarrow takes a second to load

    uri = ResultUri.parse(address)
    catalog = load_config(config)
    named = registry or os.environ.get("LAKEWRIGHT_REGISTRY")
    with open_registry(catalog, named, none=warehouse is not None or named is None) as executions:
        reader = ResultReader(catalog, warehouse, ResultNamespaces.from_environment(), executions)
        if count:
            print(reader.count(uri))
        elif after is not None:
            news = reader.after(uri, None if after == "start" else Cursor.parse(after), limit)
            _print(news.rows)
            print(json.dumps({"cursor": str(news.cursor)}))
        else:
            _print(reader.range(uri, offset, limit))


def _print(rows: Table) -> None:
    for row in rows.to_pylist():
        print(json.dumps(row, default=str))
