"""The storages of a tenant: buckets that the stack makes, and existing buckets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pulumi

from lakewright.aws.existing import ExistingObjects
from lakewright.environment.platform import Platform
from lakewright.lakekeeper.buckets import bucket_settings
from lakewright.lakekeeper.buckets.store_bucket import StoreBucket
from lakewright.lakekeeper.tenant.tenant_record import TenantRecord
from lakewright.spec import TenantSpec
from lakewright.storage.aws import AwsStorage
from lakewright.storage.backend import StorageAddress, StorageBackend
from lakewright.storage.lifecycle import PrefixLifecycle
from lakewright.storage.s3 import S3Storage


@dataclass(frozen=True)
class TenantStorage:
    """A storage as its warehouses need it."""

    backend: StorageBackend
    bucket: pulumi.Input[str]
    address: StorageAddress
    kms_key_arn: pulumi.Input[str] | None = None
    made_by: list[pulumi.Resource] = field(default_factory=list[pulumi.Resource])
    """Resources that must exist before the bucket is used."""
    own_bucket: dict[str, Any] | None = None
    """The fields of `OwnBucket`, if the stack makes the bucket."""
    purged_log_bucket: str | None = None
    """Bucket for logs that is deleted with its contents."""


@dataclass(frozen=True)
class _Provisioning:
    """The inputs of the creation of a bucket."""

    spec: TenantSpec
    name: str
    """Name of the storage in the spec."""
    platform: Platform
    record: TenantRecord
    after: Sequence[pulumi.Resource]
    opts: pulumi.ResourceOptions


def make_storages(
    spec: TenantSpec,
    platform: Platform,
    record: TenantRecord,
    opts: pulumi.ResourceOptions,
    *,
    after: Sequence[pulumi.Resource] = (),
) -> dict[str, TenantStorage]:
    """Return the storages of a tenant by name. Buckets are made after the resources in `after`."""
    storages: dict[str, TenantStorage] = {}
    for name, backend in spec.storage.items():
        if backend.makes_bucket:
            storages[name] = PROVISIONERS[backend.backend](_Provisioning(spec, name, platform, record, after, opts))
        else:
            storages[name] = TenantStorage(
                backend, backend.bucket, backend.address(platform), kms_key_arn=backend.existing_kms_key_arn
            )
    return storages


def _make_aws_bucket(provisioning: _Provisioning) -> TenantStorage:
    from lakewright.aws.bucket import TenantBucket  # noqa: PLC0415 - imports pulumi_aws, which not all stacks need

    spec, name, platform = provisioning.spec, provisioning.name, provisioning.platform
    storage = cast(AwsStorage, spec.storage[name])
    address = storage.address(platform)
    own_bucket = platform.describe_own_bucket(storage)
    bucket = TenantBucket(
        f"{spec.name}-{name}",
        storage,
        tags=platform.tags(spec),
        record=provisioning.record,
        own_bucket=own_bucket,
        kept=_list_kept_warehouses(spec, name, storage.bucket, provisioning.record),
        lifecycles=_list_lifecycles(spec, name, storage.bucket, provisioning.record),
        after=provisioning.after,
        existing=ExistingObjects(platform.environment.aws, address.region) if spec.adopt else None,
        opts=pulumi.ResourceOptions.merge(
            provisioning.opts, pulumi.ResourceOptions(providers=[platform.aws(address.region)])
        ),
    )
    return TenantStorage(
        storage,
        bucket.bucket,
        address,
        kms_key_arn=bucket.kms_key_arn,
        made_by=[bucket],
        own_bucket=own_bucket,
        purged_log_bucket=storage.purged_log_bucket,
    )


def _make_store_bucket(provisioning: _Provisioning) -> TenantStorage:
    spec, name, platform, record = provisioning.spec, provisioning.name, provisioning.platform, provisioning.record
    storage = cast(S3Storage, spec.storage[name])
    bucket = StoreBucket(
        f"{spec.name}-{name}",
        server=platform.server,
        bucket=storage.stack_access,
        record_tag=record.bucket_tag,
        tags=platform.tags(spec),
        versioning=storage.versioning,
        lifecycle=bucket_settings.lifecycle(storage.noncurrent_version_days),
        policy=bucket_settings.tls_only(storage.bucket) if storage.tls_only else None,
        kept=_list_kept_warehouses(spec, name, storage.bucket, record),
        adopt=bool(spec.adopt),
        opts=pulumi.ResourceOptions.merge(
            provisioning.opts, pulumi.ResourceOptions(depends_on=[record, *provisioning.after])
        ),
    )
    return TenantStorage(
        storage, bucket.bucket, storage.address(platform), made_by=[bucket], own_bucket=storage.stack_access
    )


PROVISIONERS: Mapping[str, Callable[[_Provisioning], TenantStorage]] = {
    "aws": _make_aws_bucket,
    "s3": _make_store_bucket,
}
"""Functions that make buckets, by backend; each backend with `can_make_bucket` has an entry."""


def _list_lifecycles(
    spec: TenantSpec, storage: str, bucket: str, record: TenantRecord
) -> pulumi.Output[Mapping[str, PrefixLifecycle | None]]:
    """Return the lifecycles of a bucket by key prefix. Data of removed warehouses has the storage's lifecycle."""
    lifecycles = {
        warehouse.name: warehouse.lifecycle
        for warehouse in spec.warehouses
        if spec.find_storage_name(warehouse) == storage
    }

    def map_prefixes(values: list[Any]) -> Mapping[str, PrefixLifecycle | None]:
        recorded_warehouses: dict[str, Any] = values[0]
        kept_data: list[dict[str, Any]] = values[1] or []
        kept_lifecycles: dict[str, PrefixLifecycle | None] = {
            str(data["key_prefix"]): None for data in kept_data if data["bucket"] == bucket
        }
        return kept_lifecycles | {
            str(recorded_warehouses[name]["key_prefix"]): lifecycle for name, lifecycle in lifecycles.items()
        }

    return pulumi.Output.all(record.warehouses, record.kept).apply(map_prefixes)


def _list_kept_warehouses(
    spec: TenantSpec, storage: str, bucket: str, record: TenantRecord
) -> pulumi.Output[list[str]]:
    """Return the warehouses whose data remains in a bucket by `retain`: of the spec, and earlier warehouses."""
    declared_warehouses = [
        warehouse.name
        for warehouse in spec.warehouses
        if spec.find_storage_name(warehouse) == storage and warehouse.data_deletion == "retain"
    ]
    return record.list_kept_warehouses(bucket).apply(lambda earlier: [*declared_warehouses, *earlier])
