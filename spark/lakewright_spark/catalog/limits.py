"""Limits of a tenant, a warehouse or a namespace. `usage` compares them with what exists and what was used."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lakewright_spark.catalog.config_model import ADDED_LATER, ConfigModel

Amount = Annotated[int | None, Field(ge=1)]


class DataLimits(ConfigModel):
    """Limits; None for no limit."""

    bytes: Amount = None
    """Bytes of data and delete files, also of files that only older snapshots refer to."""
    files: Amount = None
    """Live files."""
    tables: Amount = None


class TenantLimits(DataLimits):
    """Limits of all warehouses together, and of computing units."""

    compute: Annotated[Amount, ADDED_LATER] = None
    """Hours of computing units in a UTC month."""


class WarehouseLimits(DataLimits):
    """Limits of a warehouse and of namespaces in it."""

    compute: Annotated[Amount, ADDED_LATER] = None
    """Hours in a UTC month of computing units whose default warehouse it is."""
    namespaces: dict[str, DataLimits] = {}
    """By full name of the namespace, levels joined by a dot. They include the namespaces below."""
