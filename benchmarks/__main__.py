"""`python -m benchmarks [NAME ...]`: measure, print a table, write benchmarks/results.json."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from rich.console import Console

from benchmarks import (
    compaction,
    fleet_drift,
    granted_drift,
    journal,
    listing,
    maintenance,
    many_tables,
    many_warehouses,
    noop,
    registrations,
    results_io,
    short_commands,
    small_objects,
    table_care,
    tpch_care,
)
from benchmarks.ground import ground
from benchmarks.measure import table
from demo.stage import REPOSITORY

BENCHMARKS = {
    "noop": noop.measure,
    "small_objects": small_objects.measure,
    "many_warehouses": many_warehouses.measure,
    "results_io": results_io.measure,
    "maintenance": maintenance.measure,
    "compaction": compaction.measure,
    "many_tables": many_tables.measure,
    "listing": listing.measure,
    "table_care": table_care.measure,
    "tpch_care": tpch_care.measure,
    "journal": journal.measure,
    "fleet_drift": fleet_drift.measure,
    "granted_drift": granted_drift.measure,
    "registrations": registrations.measure,
    "short_commands": short_commands.measure,
}
RESULTS = Path(__file__).parent / "results.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(BENCHMARKS)}; default: all of them")
    names = parser.parse_args().names or list(BENCHMARKS)
    if unknown := [name for name in names if name not in BENCHMARKS]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    # Programs and plugins are processes of their own, and some use providers from here.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    console = Console(width=180)
    with ground() as standing:
        rows = [row for name in names for row in BENCHMARKS[name](standing)]
    console.print(table(rows))
    RESULTS.write_text(json.dumps([row.to_json() for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
