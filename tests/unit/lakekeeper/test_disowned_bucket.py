"""A bucket of the stack in a store cannot become one that exists: the stack would delete it."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest
from lakewright.lakekeeper.provider.errors import RemovalRefusedError
from lakewright.lakekeeper.tenant import tenant_changes
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordArgs

PLACE = {"bucket": "lake", "region": "local-01", "endpoint": "http://store.test:9000"}
KEYS = {"access_key_id": "env:KEY_ID", "secret_access_key": "env:SECRET"}


def record(*, is_made: bool, storage: str = "main") -> TenantRecordArgs:
    store = PLACE | KEYS
    props: dict[str, Any] = {"server": {"endpoint": "https://lake.test"}, "tenant": "acme", "warehouses": {}}
    props |= {"buckets": {storage: store}} if is_made else {}
    return TenantRecordArgs.parse(props | {"stores": {storage: store | {"is_made": is_made}}})


def no_client() -> NoReturn:
    raise AssertionError("refused before any call")


@pytest.mark.parametrize("storage", ["main", "renamed"])
def test_storage_without_create_keeps_the_bucket(storage: str) -> None:
    old, new = record(is_made=True), record(is_made=False, storage=storage)

    with pytest.raises(RemovalRefusedError, match="Keep `create: true`"):
        tenant_changes.refuse(no_client, old, new, set())
