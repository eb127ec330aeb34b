"""`lakewright-spark jars`"""

from __future__ import annotations

from lakewright_spark.session import jars


def fetch_jars() -> None:
    """Fetch the Iceberg jars, unless they are there, and print their paths."""
    for path in jars.fetch():
        print(path)
