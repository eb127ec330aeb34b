"""Checks of limits of AWS and Lakekeeper, on the document as written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lakewright_spark.aws_partition import find_partition

from lakewright.names.object_names import LONGEST_ROLE_NAME, role_name, share_purpose
from lakewright.names.types import why_no_tag
from lakewright.storage.registry import find_backend
from lakewright.validation.documents import as_mapping
from lakewright.validation.problems import SpecMistake

PlacedWarehouses = Iterable[tuple[int, Mapping[str, Any], Mapping[str, Any]]]
"""Position of each warehouse, the warehouse, and its storage."""
_SESSION_POLICY = 2048
"""Characters of the longest session policy. Source: AWS STS, `AssumeRole`, `Policy`."""
_REST_OF_POLICY, _REST_WITH_KEY = 641, 739
"""Characters of the session policy of Lakekeeper 0.13 for a table, without key prefix, bucket and ARN of the key."""
_KEY_ARN = 80
"""Characters of the ARN of a key that the stack makes, at most."""
_ROLE_CHARACTERS = re.compile(r"[ -~\u00a1-\u00ff]*")
"""Characters of session policies and of roles' descriptions. Source: AWS STS, `AssumeRole`; IAM, `CreateRole`."""


def role_checks(tenant: object, warehouses: PlacedWarehouses) -> Iterator[SpecMistake]:
    """Yield warehouses whose role name would be longer than IAM allows.

    A renamed warehouse keeps the roles of its first name, which only the tenant's record has.
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
        names = [role_name(tenant, first, purpose) for purpose in (None, *_purposes(warehouse))]
        longest = max(names, key=len)
        if len(longest) > LONGEST_ROLE_NAME:
            yield (
                ("warehouses", index, "name"),
                f"expected a shorter name: its role `{longest}` has {len(longest)} characters, and IAM allows"
                f" {LONGEST_ROLE_NAME}. A renamed warehouse keeps its role: do not remove its `renamed_from`",
            )


def _purposes(warehouse: Mapping[str, Any]) -> list[str]:
    """Return the purposes of the roles that a warehouse has besides that of the catalog."""
    share_names = [str(share) for share in as_mapping(warehouse.get("shares"))]
    return [
        *(["vending"] if warehouse.get("vending_role") is True else []),
        *(["maintenance"] if warehouse.get("maintenance_role") else []),
        *(share_purpose(share) for share in share_names),
    ]


def access_checks(warehouses: PlacedWarehouses) -> Iterator[SpecMistake]:
    """Yield settings of warehouses that need a role or a bucket of the stack where there is none."""
    for index, warehouse, storage in warehouses:
        backend = find_backend(storage)
        if backend and not backend.makes_role:
            for key in ("vending_role", "maintenance_role", "shares", "lifecycle"):
                if warehouse.get(key):
                    yield (
                        ("warehouses", index, key),
                        f"expected only on a storage with `backend: aws`, whose bucket and roles the stack makes; the"
                        f" storage has `backend: {storage.get('backend')}`",
                    )
        if warehouse.get("delegation") == "remote-signing":
            for key in ("vending_role", "token_seconds"):
                if warehouse.get(key):
                    yield (
                        ("warehouses", index, key),
                        "expected only with `delegation: vended`: with `remote-signing` no credentials are vended",
                    )


def log_checks(storages: Mapping[str, Mapping[str, Any]]) -> Iterator[SpecMistake]:
    """Yield buckets of access logs that hold data, or that two storages would make."""
    buckets = {item["bucket"]: name for name, item in storages.items() if isinstance(item.get("bucket"), str)}
    bucket_makers: dict[str, str] = {}
    for name, item in storages.items():
        logs = as_mapping(item.get("access_logs"))
        bucket = logs.get("bucket")
        if not isinstance(bucket, str):
            continue
        path = ("storage", name, "access_logs", "bucket")
        if bucket in buckets:
            yield path, f"expected a bucket without data of warehouses; `{bucket}` is that of storage.{buckets[bucket]}"
        elif logs.get("owner") == "stack" and bucket_makers.setdefault(bucket, name) != name:
            yield (
                path,
                f"expected another bucket; storage.{bucket_makers[bucket]} makes `{bucket}`. For one bucket of all"
                " logs, use `owner: platform`",
            )


def tag_checks(owner: object, warehouses: PlacedWarehouses) -> Iterator[SpecMistake]:
    """Yield an owner that AWS refuses as the value of a tag."""
    tags = any((backend := find_backend(storage)) and backend.makes_role for _, _, storage in warehouses)
    if tags and isinstance(owner, str) and (reason := why_no_tag(owner)):
        yield ("owner",), f"expected the value of a tag, which the objects on AWS get: {reason}"


def check_vending(warehouses: PlacedWarehouses, default_region: str | None = None) -> Iterator[SpecMistake]:
    """Yield warehouses that would vend useless credentials in their partition.

    Lakekeeper writes `arn:aws:s3:::BUCKET` into the session policy of each vended credential (0.11 to 0.14,
    `get_sts_policy_string`). In `aws-cn` and `aws-us-gov` no bucket has that ARN.

    Args:
        warehouses: The warehouses of the spec.
        default_region: Region of storages that name none; with it, only those are checked.
    """
    for index, warehouse, storage in warehouses:
        region = _find_region(storage, default_region)
        backend = find_backend(storage)
        if not (backend and backend.is_on_aws) or not isinstance(region, str):
            continue
        partition = find_partition(region)
        if partition != "aws" and warehouse.get("delegation", "vended") == "vended":
            yield (
                ("warehouses", index, "delegation"),
                f"expected `remote-signing`: region {region} is in partition {partition}, and credentials that"
                " Lakekeeper vends allow ARNs of partition aws alone",
            )


def prefix_checks(warehouses: PlacedWarehouses) -> Iterator[SpecMistake]:
    """Yield key prefixes that AWS refuses in session policies or in the description of a role."""
    for index, warehouse, storage in warehouses:
        backend, prefix = find_backend(storage), warehouse.get("key_prefix")
        if not (backend and backend.is_on_aws) or not isinstance(prefix, str):
            continue
        is_vended = warehouse.get("delegation", "vended") == "vended"
        path = ("warehouses", index, "key_prefix")
        longest = find_longest_prefix(storage)
        if is_vended and len(prefix) > longest:
            yield (
                path,
                f"expected at most {longest} characters with `delegation: vended`: AWS limits the policy of vended"
                f" credentials to {_SESSION_POLICY} characters; found {len(prefix)}",
            )
        if (is_vended or backend.makes_role) and not _ROLE_CHARACTERS.fullmatch(prefix):
            yield (
                path,
                "expected characters up to U+00FF, such as `A` or `é`: AWS refuses all further characters in roles and"
                " in the policies of vended credentials",
            )


def find_longest_prefix(storage: Mapping[str, Any]) -> int:
    """Return the characters of the longest key prefix whose session policy STS accepts.

    The policy has the prefix twice and the bucket three times. AWS also limits the packed size, and publishes no rule.
    """
    kms = storage.get("kms_key_arn") or as_mapping(storage.get("encryption")).get("kms")
    bucket = 3 * len(str(storage.get("bucket", "")))
    if not kms or kms == "s3":
        return (_SESSION_POLICY - _REST_OF_POLICY - bucket) // 2
    arn = _KEY_ARN if kms == "own" else len(str(kms))
    return (_SESSION_POLICY - _REST_WITH_KEY - bucket - arn) // 2


def key_checks(storages: Mapping[str, Mapping[str, Any]], default_region: str | None = None) -> Iterator[SpecMistake]:
    """Yield KMS keys of another region than their bucket, which S3 refuses.

    Args:
        storages: The storages of the spec by name.
        default_region: Region of storages that name none; with it, only those are checked.
    """
    for name, item in storages.items():
        region = _find_region(item, default_region)
        arns = {
            ("encryption", "kms"): as_mapping(item.get("encryption")).get("kms"),
            ("kms_key_arn",): item.get("kms_key_arn"),
        }
        for path, arn in arns.items():
            parts = str(arn).split(":")
            if isinstance(region, str) and parts[0] == "arn" and len(parts) > 5 and parts[3] != region:
                yield (
                    ("storage", name, *path),
                    f"expected a key of the bucket's region, {region}; found one of {parts[3] or 'no region'}",
                )


def _find_region(storage: Mapping[str, Any], default_region: str | None) -> object:
    """Return the region as written. With a default region, return it for a storage that names none, else None."""
    region = storage.get("region")
    if default_region is None:
        return region
    return None if region else default_region
