"""Tables of the namespace `ops` that the scheduler reads and writes without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from lakewright_spark.policies.builtin import OPS


def made(
    catalog: Catalog,
    name: str,
    schema: Schema,
    properties: Mapping[str, str],
    partitions: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
) -> Table:
    """The table as it is now, made if it is not there; somebody else may make it at the same time."""
    if (table := found(catalog, name)) is not None:
        return table
    with suppress(NamespaceAlreadyExistsError):
        catalog.create_namespace((OPS,))
    try:
        return catalog.create_table((OPS, name), schema, partition_spec=partitions, properties=dict(properties))
    except TableAlreadyExistsError:
        return catalog.load_table((OPS, name))


def found(catalog: Catalog, name: str) -> Table | None:
    """The table if it is there."""
    try:
        return catalog.load_table((OPS, name))
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
