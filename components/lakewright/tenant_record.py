"""What the stack records of a tenant before it changes anything: its warehouses and buckets."""

from __future__ import annotations

from typing import Any

import pulumi

from lakewright.aws.bucket import own_bucket_of
from lakewright.environment.platform import Platform
from lakewright.lakekeeper.tenant.tenant_record import TenantRecord
from lakewright.spec import AwsStorage, TenantSpec


def record_for(spec: TenantSpec, platform: Platform, opts: pulumi.ResourceOptions) -> TenantRecord:
    """Return the record of a tenant. Everything that leads to its data is made after it."""
    return TenantRecord(
        spec.name,
        server=platform.server,
        tenant=spec.name,
        warehouses=_warehouses(spec),
        buckets={
            name: own_bucket_of(storage, platform) | {"has_own_key": storage.encryption.kms == "own"}
            for name, storage in spec.storage.items()
            if isinstance(storage, AwsStorage)
        },
        dropped_warehouses=spec.dropped_warehouses,
        adopting=[warehouse.name for warehouse in spec.warehouses if spec.adopts(warehouse)],
        opts=opts,
    )


def _warehouses(spec: TenantSpec) -> dict[str, dict[str, Any]]:
    """The fields of `RecordedWarehouse`, by name."""
    found: dict[str, dict[str, Any]] = {}
    for warehouse in spec.warehouses:
        fields = {
            "bucket": spec.storage[spec.storage_of(warehouse)].bucket,
            "deletion": warehouse.deletion,
            "renamed_from": warehouse.renamed_from,
            "key_prefix": warehouse.key_prefix,
        }
        found[warehouse.name] = {name: value for name, value in fields.items() if value is not None}
    return found
