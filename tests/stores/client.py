"""PyIceberg in the environment of these tests: write and read a table, and try its credential outside of the table.

Standard input has the properties of the catalog; standard output gets what was found, both as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any, cast

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.io import FileIO

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


def describe_write(io: FileIO, location: str) -> str:
    """Return `written`, or why a file could not be written."""
    try:
        with io.new_output(location).create(overwrite=True) as stream:
            stream.write(b"outside")
    except (OSError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return "written"


def main() -> None:
    catalog = load_catalog("executions", **json.load(sys.stdin))
    table = catalog.create_table("results.numbers", ROWS.schema)
    table.append(ROWS)
    loaded = catalog.load_table("results.numbers")
    json.dump(
        {
            "location": loaded.location(),
            "rows": cast(Any, loaded.scan().to_arrow()).to_pydict(),
            "inside": describe_write(loaded.io, f"{loaded.location()}/data/probe"),
            "outside": describe_write(loaded.io, f"{loaded.location()}-outside/probe"),
        },
        sys.stdout,
    )


main()
