"""A process that writes rows one by one, and reads them by batches: it prints its seconds and its peak of memory."""

from __future__ import annotations

import sys

import pyarrow as pa
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.result_uris import Execution, Port
from lakewright_spark.results.reader import ResultReader
from lakewright_spark.results.writer import ResultWriter

from benchmarks.measure import measure_seconds, read_peak_mib

SCHEMA = pa.schema([("number", pa.int64()), ("category", pa.int32()), ("text", pa.string()), ("value", pa.float64())])


def stream(rows: int) -> None:
    """Write and read this number of rows in the catalog on standard input; print seconds and peak memory in MiB."""
    config = CatalogConfig.from_json(sys.stdin.read())
    writer = ResultWriter(config, config.warehouses[0].name)
    uri = Execution(901, 1).result(Port("Stream-1"))
    taken = measure_seconds(
        lambda: writer.write_rows(
            uri, SCHEMA, ((number, number % 97, f"row {number}", number * 0.5) for number in range(rows))
        )
    )
    written = read_peak_mib()
    read = 0

    def read_rows() -> None:
        nonlocal read
        for rows_of_group in ResultReader(config, writer.warehouse).iterate_batches(uri):
            read += rows_of_group.num_rows

    taken += measure_seconds(read_rows)
    if read != rows:
        raise SystemExit(f"expected {rows} rows, found {read}")
    print(f"{written:.0f} MiB after writing", taken, read_peak_mib())


if __name__ == "__main__":
    stream(int(sys.argv[1]))
