"""Role names within IAM's limit: they contain a warehouse's first name, which only the record has after a rename."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.lakekeeper.provider.errors import RemovalRefusedError
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordProvider
from lakewright.spec.parsing import parse_spec

TENANT = "a" * 32
LONG = "w" * 30


def spec(warehouse: dict[str, str]) -> dict[str, Any]:
    return {
        "version": 1,
        "name": TENANT,
        "owner": "team",
        "environment": "demo",
        "storage": {"main": {"backend": "aws", "bucket": "lakehouse"}},
        "warehouses": [warehouse],
    }


def check_record(olds: dict[str, Any], name: str, renamed_from: str | None = None, bucket: str = "lakehouse") -> Any:
    warehouse = {"bucket": bucket, "deletion": "protect"}
    if renamed_from:
        warehouse["renamed_from"] = renamed_from
    bucket_record = {"bucket": "lakehouse", "region": "us-east-1", "has_own_key": True}
    news = {
        "server": {"endpoint": "https://lake.test"},
        "tenant": TENANT,
        "warehouses": {name: warehouse},
        "buckets": {"main": bucket_record},
    }
    checked = TenantRecordProvider().check(olds, news)
    assert not checked.failures
    return checked.inputs


def test_second_rename_keeps_the_role_of_the_first_name() -> None:
    first = check_record({}, "short")
    second = check_record(first, LONG, renamed_from="short")
    third = check_record(second, "other", renamed_from=LONG)
    assert third["warehouses"]["other"]["origin"] == "short"
    parse_spec(spec({"name": "other", "renamed_from": LONG}), "spec")


def test_first_name_that_iam_refuses_is_refused() -> None:
    """A stack without a record takes `renamed_from` for the first name."""
    with pytest.raises(RemovalRefusedError, match="with 74 characters; IAM allows 64"):
        check_record({}, "other", renamed_from=LONG)


def test_first_name_is_free_without_a_role_of_the_stack() -> None:
    check_record({}, "other", renamed_from=LONG, bucket="own")
