"""Look up what AWS must have before a stack makes anything: log buckets, the permissions boundary, principals."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright.aws.existing import ExistingObjects
from lakewright.environment.platform import Platform
from lakewright.spec import Problem, SpecError, TenantSpec
from lakewright.storage.aws import AwsStorage
from lakewright.validation.moment import has_ended


def refuse_missing(spec: TenantSpec, platform: Platform) -> None:
    """Raise SpecError with everything that the spec names and AWS lacks.

    Only settings that a spec or environment has are looked up, so that others cost no call.
    """
    if problems := list(_find_missing(spec, platform)):
        raise SpecError(f"tenant {spec.name}", problems)


def _find_missing(spec: TenantSpec, platform: Platform) -> Iterator[Problem]:
    account = platform.environment.aws
    regions: list[str] = []
    for name, storage in spec.storage.items():
        if not isinstance(storage, AwsStorage):
            continue
        region = storage.address(platform).region
        regions.append(region)
        logs = storage.access_logs
        if logs and logs.owner == "platform":
            path = f"storage.{name}.access_logs.bucket"
            live_region = ExistingObjects(account, region).bucket_region(logs.bucket)
            if live_region is None:
                yield Problem(
                    path,
                    f"expected a bucket of this account; there is no bucket `{logs.bucket}`, or it belongs to another"
                    " account. Create it, or set `owner: stack`",
                )
            elif live_region != region:
                yield Problem(
                    path,
                    f"expected a bucket in {region}, the region of the storage: S3 delivers logs within a region",
                    f"{logs.bucket} in {live_region}",
                )
    if not regions:
        return
    aws = ExistingObjects(account, regions[0])
    boundary = account.permissions_boundary
    if boundary and not aws.has_policy(boundary):
        yield Problem(
            f"environment {spec.environment}: aws.permissions_boundary",
            "expected the ARN of a managed policy that exists",
            boundary,
        )
    for index, warehouse in enumerate(spec.warehouses):
        trusted = {
            f"shares.{name}": share.principal_arn
            for name, share in warehouse.shares.items()
            if not has_ended(share.until, platform.now)
        }
        if warehouse.maintenance_role:
            trusted["maintenance_role"] = warehouse.maintenance_role.principal_arn
        for key, principal_arn in trusted.items():
            if aws.lacks_principal(principal_arn):
                yield Problem(
                    f"warehouses.{index}.{key}.principal_arn",
                    "expected a user or role that exists: IAM refuses a role that trusts a missing user or role",
                    principal_arn,
                )
