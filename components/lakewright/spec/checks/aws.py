"""Checks of limits of AWS and Lakekeeper, on the document as written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lakewright_spark.aws_partition import partition_of

from lakewright.names.object_names import LONGEST_ROLE_NAME, role_name
from lakewright.storage.registry import find_backend
from lakewright.validation.problems import SpecMistake

PlacedWarehouses = Iterable[tuple[int, Mapping[str, Any], Mapping[str, Any]]]
"""Position of each warehouse, the warehouse, and its storage."""


def role_checks(tenant: object, warehouses: PlacedWarehouses) -> Iterator[SpecMistake]:
    """Yield warehouses whose role name would be longer than IAM allows.

    A renamed warehouse keeps the role of its first name, which only the tenant's record has.
    """
    for index, warehouse, storage in warehouses:
        first = warehouse.get("name")
        if (
            warehouse.get("renamed_from")
            or not ((backend := find_backend(storage)) and backend.makes_role)
            or not isinstance(first, str)
            or not isinstance(tenant, str)
        ):
            continue
        name = role_name(tenant, first)
        if len(name) > LONGEST_ROLE_NAME:
            yield (
                ("warehouses", index, "name"),
                f"expected a shorter name: its role `{name}` has {len(name)} characters, and IAM allows"
                f" {LONGEST_ROLE_NAME}. A renamed warehouse keeps its role: do not remove its `renamed_from`",
            )


def vending_checks(warehouses: PlacedWarehouses, default_region: str | None = None) -> Iterator[SpecMistake]:
    """Yield warehouses that would vend useless credentials in their partition.

    Lakekeeper writes `arn:aws:s3:::BUCKET` into the session policy of each vended credential (0.11 to 0.14,
    `get_sts_policy_string`). In `aws-cn` and `aws-us-gov` no bucket has that ARN.

    Args:
        warehouses: The warehouses of the spec.
        default_region: Region of storages that name none; with it, only those are checked.
    """
    for index, warehouse, storage in warehouses:
        region = storage.get("region")
        if default_region is not None:
            region = None if region else default_region
        backend = find_backend(storage)
        if not (backend and backend.is_on_aws) or not isinstance(region, str):
            continue
        partition = partition_of(region)
        if partition != "aws" and warehouse.get("delegation", "vended") == "vended":
            yield (
                ("warehouses", index, "delegation"),
                f"expected `remote-signing`: region {region} is in partition {partition}, and credentials that"
                " Lakekeeper vends allow ARNs of partition aws alone",
            )
