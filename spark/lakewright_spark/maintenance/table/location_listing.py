"""Listings of the files under a table's location: by the executors, or a table of the user such as an inventory."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from lakewright_spark import handed_over
from lakewright_spark.errors import PolicyRefusedError
from lakewright_spark.maintenance.table.iceberg import IcebergTable, first_line, iterate
from lakewright_spark.session.own_classes import call_own_class

FILES_PER_TASK = 20_000
"""Files that a task lists: twenty requests to S3, about two seconds."""
MAX_TASKS = 400
_SAMPLES_PER_TASK = 100
"""The sizes of tasks differ by about a tenth then. The driver has a path of each sample."""
_LISTING = "lakewright.spark.LocationListing"
_COLUMNS = {"file_path": "string", "last_modified": "timestamp"}
"""Columns of a listing, and their types in Spark SQL, as `remove_orphan_files` expects them in `file_list_view`."""


def list_location(opened: IcebergTable, listing: str | None = None) -> DataFrame:
    """Return `file_path` and `last_modified` of the files under the table's location.

    Hidden files are left out, except objects that name the owner of a table after a migration.

    Args:
        opened: The table.
        listing: Table or view of the user that has the listing. Default: the executors list the store.

    Raises:
        PolicyRefusedError: The user's listing does not exist, or has other columns.
    """
    files = _list_with_executors(opened) if listing is None else _read_listing(opened, listing)
    path, location = f.col("file_path"), opened.location
    # Iceberg compares the beginning of an address only, so a listing could have files of `sales2` for table `sales`.
    files = files.where(path.startswith(f"{location}/"))
    is_hidden = f.substring(path, len(location) + 1, _ALL).rlike(_build_hidden_pattern(opened))
    return files.where(~is_hidden | path.rlike(handed_over.PATTERN))


_ALL = 2**31 - 1
"""Length of a substring up to the end of the text."""


def _build_hidden_pattern(opened: IcebergTable) -> str:
    """Return a regular expression for addresses within the location that Iceberg's own listing leaves out.

    Names with a leading period or underscore are hidden, unless they are the folder of a partition.
    """
    names = [field.name() for spec in opened.list_specs() for field in iterate(spec.fields())]
    folders = "|".join(f"{re.escape(name)}=" for name in sorted({*names}) if name.startswith(("_", ".")))
    return f"/(?!{folders})[._]" if folders else "/[._]"


def _read_listing(opened: IcebergTable, listing: str) -> DataFrame:
    expected = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
    try:
        files = opened.spark.table(listing)
        types = dict(files.dtypes)
    except PySparkException as error:
        raise PolicyRefusedError(
            f"table {opened.table}: orphan_files: expected a table or view with columns {expected} in `listing`, found "
            f"{listing!r}: {first_line(error)}"
        ) from None
    if any(types.get(name) != kind for name, kind in _COLUMNS.items()):
        columns = ", ".join(f"{name} {kind}" for name, kind in types.items())
        raise PolicyRefusedError(
            f"table {opened.table}: orphan_files: expected columns {expected} in `listing` {listing}, found {columns}"
        )
    return files.select(*_COLUMNS)


def _list_with_executors(opened: IcebergTable) -> DataFrame:
    boundaries = opened.find_class("java.util.ArrayList")()
    for boundary in find_boundaries(opened):
        boundaries.add(boundary)
    return DataFrame(
        call_own_class(opened.spark, _LISTING, "list", opened.java, opened.location, boundaries), opened.spark
    )


def find_boundaries(opened: IcebergTable) -> list[str]:
    """Return addresses that divide the table's current files into parts of similar size, in ascending order.

    Most listed files are current files of the table, so these addresses divide the listing as well.
    """
    current = opened.java.currentSnapshot()
    summary = current.summary() if current is not None else None  # Iceberg requires none
    text = summary.get("total-data-files") if summary is not None else None
    total = int(text) if text and text.isdigit() else 0
    tasks = min(-(-total // FILES_PER_TASK), MAX_TASKS)
    if tasks <= 1:
        return []
    step = max(total // (tasks * _SAMPLES_PER_TASK), 1)
    sample = DataFrame(
        call_own_class(opened.spark, _LISTING, "sample", opened.java, f"{opened.location}/", step, tasks), opened.spark
    )
    paths = sorted((str(row.value) for row in sample.collect()), key=str.encode)
    boundaries = {paths[number * len(paths) // tasks] for number in range(1, tasks)} if paths else set[str]()
    return sorted(boundaries, key=str.encode)
