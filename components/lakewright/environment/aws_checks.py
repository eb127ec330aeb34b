"""Check a spec against the AWS settings of its environment: token lifetimes, tags and partitions. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lakewright_spark.aws_partition import find_partition

from lakewright.environment.environment import Environment
from lakewright.spec.checks.cross_checks import is_on_aws, makes_roles, place_warehouses
from lakewright.validation.documents import as_mapping
from lakewright.validation.problems import Problem

_MOST_TAGS = 50
_OWN_TAGS = 5
"""Tags of a bucket for tenant, owner, stack and record, and the consent to an adoption."""
LONGEST_CHAINED_SESSION = 3600
"""Seconds. STS limits a session that another role's session opens. Source: IAM, "Methods to assume a role"."""


def aws_problems(document: Mapping[str, Any], environment: Environment, region: str | None) -> Iterator[Problem]:
    """Yield the contradictions of a spec, as written, with the AWS settings of an environment.

    Args:
        document: The spec.
        environment: The environment.
        region: Region of storages that name none.
    """
    name = str(document.get("environment"))
    yield from _check_token_lifetimes(document, environment, name)
    yield from _tags(document, environment, name)
    if makes_roles(document):
        yield from _partitions(document, environment, region, name)


def _check_token_lifetimes(document: Mapping[str, Any], environment: Environment, name: str) -> Iterator[Problem]:
    principal = environment.lakekeeper.principal_arn
    if principal and ":user/" in principal:
        return
    identity = f"runs as {principal}, whose sessions are role sessions" if principal else "has no `principal_arn`"
    for index, warehouse, storage in place_warehouses(document):
        seconds = warehouse.get("token_seconds")
        if is_on_aws(storage) and isinstance(seconds, int) and seconds > LONGEST_CHAINED_SESSION:
            yield Problem(
                f"warehouses.{index}.token_seconds",
                f"expected at most {LONGEST_CHAINED_SESSION}: Lakekeeper of environment {name} {identity}, and AWS"
                " limits a role that another role assumes to an hour (role chaining)",
                str(seconds),
            )


def _tags(document: Mapping[str, Any], environment: Environment, name: str) -> Iterator[Problem]:
    tags = environment.aws.tags
    count = len({*as_mapping(document.get("labels")), *tags}) + _OWN_TAGS
    if makes_roles(document) and count > _MOST_TAGS:
        yield Problem(
            "labels",
            f"expected at most {_MOST_TAGS} tags of an object on AWS, with {_OWN_TAGS} of the stack",
            str(count),
        )
    labels = as_mapping(document.get("labels"))
    for key, value in labels.items():
        spelling = next((other for other in [*labels, *tags] if other != key and other.lower() == key.lower()), None)
        if makes_roles(document) and spelling is not None:
            yield Problem(
                f"labels.{key}",
                f"expected a key that differs from `{spelling}` by more than capitalization, which IAM ignores in tags",
            )
        if key in tags and str(value) != tags[key]:
            yield Problem(
                f"labels.{key}",
                f"expected another label: environment {name} sets the AWS tag `{key}` to `{tags[key]}`",
            )


def _partitions(
    document: Mapping[str, Any], environment: Environment, region: str | None, name: str
) -> Iterator[Problem]:
    """Find ARNs of another partition than the buckets: IAM knows none of another partition."""
    partitions: set[str] = set()
    for index, warehouse, storage in place_warehouses(document):
        storage_region = storage.get("region") or region
        if not is_on_aws(storage) or not isinstance(storage_region, str):
            continue
        partition = find_partition(storage_region)
        partitions.add(partition)
        role_documents = {
            "maintenance_role": as_mapping(warehouse.get("maintenance_role")),
            **{f"shares.{key}": as_mapping(value) for key, value in as_mapping(warehouse.get("shares")).items()},
        }
        for key, trusted in role_documents.items():
            arn = trusted.get("principal_arn")
            if isinstance(arn, str) and arn.startswith("arn:") and arn.split(":")[1] != partition:
                yield Problem(
                    f"warehouses.{index}.{key}.principal_arn",
                    f"expected an ARN of partition {partition}, that of region {storage_region}",
                    arn,
                )
    arns = {
        "lakekeeper.principal_arn": environment.lakekeeper.principal_arn,
        "aws.permissions_boundary": environment.aws.permissions_boundary,
    }
    for key, arn in arns.items():
        if arn and partitions and arn.split(":")[1] not in partitions:
            yield Problem(
                f"environment {name}: {key}",
                f"expected an ARN of partition {' or '.join(sorted(partitions))}, that of the tenant's regions",
                arn,
            )
