"""Spark on a storage emulator: write, change and read a table, and try its credential outside of the table.

Standard input has the catalog configuration and the addresses of the emulator; standard output gets what was found.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.session.builder import spark_session
from py4j.protocol import Py4JJavaError


def write_file(io: Any, location: str) -> str:
    """Return `written`, or why a file could not be written."""
    try:
        stream = io.newOutputFile(location).createOrOverwrite()
        stream.write(bytearray(b"outside"))
        stream.close()
    except Py4JJavaError as error:
        causes, cause = [], error.java_exception
        while cause is not None:
            causes.append(str(cause.getMessage()))
            cause = cause.getCause()
        return "; ".join(causes)
    return "written"


def main() -> None:
    settings = json.load(sys.stdin)
    config = CatalogConfig.from_json(json.dumps(settings["config"]))
    properties = {f"spark.sql.catalog.executions.{name}": value for name, value in settings["options"].items()}
    spark: Any = spark_session(config, "stores", properties=properties)
    name = "executions.results.rows"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, text STRING) USING iceberg TBLPROPERTIES ('format-version' = '2')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    call = "CALL executions.system.{}(table => 'results.rows', {})".format
    spark.sql(call("rewrite_data_files", "options => map('rewrite-all', 'true')"))
    spark.sql(call("expire_snapshots", "older_than => now(), retain_last => 1"))
    table = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    document = {
        "location": table.location(),
        "rows": [row.asDict() for row in spark.table(name).orderBy("id").collect()],
        "snapshots": spark.table(f"{name}.snapshots").count(),
        "inside": write_file(table.io(), f"{table.location()}/data/probe"),
        "outside": write_file(table.io(), f"{table.location()}-outside/probe"),
    }
    json.dump(document, sys.stdout)


main()
