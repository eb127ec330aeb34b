"""Tables of a tenant's spec: created, written to, restored after a drop, evolved in place, renamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from lakewright.http.retry import retry_until

from tests.integration.tenant.conftest import list_changes

pytestmark = pytest.mark.timeout(300)

ORDERS: dict[str, Any] = {
    "name": "executions.results.orders",
    "columns": [{"name": "id", "type": "int", "required": True}, {"name": "note", "type": "string"}],
    "partition_by": ["id"],
    "properties": {"write.parquet.compression-codec": "zstd"},
}
ROWS = pa.schema([pa.field("id", pa.int32(), nullable=False), pa.field("note", pa.string())])


def test_declared_table_is_restored_and_evolves(make_tenant: Callable[..., Any], lakekeeper: Any) -> None:
    soft = {"name": "executions", "namespaces": ["results"], "deletion": "purge", "soft_delete_days": 7}
    tenant = make_tenant(warehouses=[soft], tables=[ORDERS])
    warehouse = tenant.up()["outputs"]["warehouse_ids"]["executions"]
    catalog = tenant.catalog("executions")
    rows = pa.Table.from_pylist([{"id": 1, "note": "first"}], schema=ROWS)
    catalog.load_table("results.orders").append(rows)

    lakekeeper.delete(f"/catalog/v1/{warehouse}/namespaces/results/tables/orders").raise_for_status()
    assert "Restored table executions.results.orders" in tenant.output("undrop", "executions.results.ORDERS")

    tenant.spec["tables"] = [ORDERS | {"columns": [{"name": "id", "type": "string", "required": True}]}]
    tenant.write()
    refused = tenant.run("preview", "--engine", "embedded")
    assert refused.returncode != 0
    assert "EvolutionRefusedError: table `results.orders`" in refused.stdout + refused.stderr
    assert "`id`: int -> string is another type" in refused.stdout + refused.stderr

    columns = [*ORDERS["columns"], {"name": "price", "type": "decimal(12,2)"}]
    evolved = ORDERS | {"name": "executions.results.purchases", "renamed_from": ORDERS["name"], "columns": columns}
    tenant.spec["tables"] = [evolved]
    tenant.write()
    assert list_changes(tenant.up()) == {
        ("update", "TenantRecord", tenant.name),
        ("update", "Table", f"{tenant.name}-executions.results.purchases"),
    }
    rows_after_rename = catalog.load_table("results.purchases").scan().to_arrow().to_pylist()
    assert rows_after_rename == [{"id": 1, "note": "first", "price": None}]
    assert list_changes(tenant.verb("preview", "--refresh", "--expect-no-changes")) == set()


@pytest.mark.parametrize(("files", "remain"), [("delete", False), ("keep", True)])
def test_removed_table_keeps_or_deletes_its_files(
    make_tenant: Callable[..., Any], aws: Callable[..., Any], files: str, *, remain: bool
) -> None:
    """The server deletes files in the background, and keeps files that no task will delete."""
    tenant = make_tenant(tables=[ORDERS | {"dropped_files": files}])
    tenant.up()
    table = tenant.catalog("executions").load_table("results.orders")
    table.append(pa.Table.from_pylist([{"id": 1, "note": "first"}], schema=ROWS))
    prefix = table.location().partition(f"{tenant.bucket}/")[2]

    tenant.spec["tables"] = []
    tenant.write()
    tenant.up()

    assert not tenant.catalog("executions").table_exists("results.orders")
    if remain:
        assert _list_keys(aws, tenant.bucket, prefix)
    else:
        retry_until(lambda: _expect_empty(aws, tenant.bucket, prefix), _is_assertion, seconds=60, every=0.1)


def _is_assertion(error: BaseException) -> bool:
    return isinstance(error, AssertionError)


def _expect_empty(aws: Callable[..., Any], bucket: str, prefix: str) -> None:
    """Fail until the server's purge task has run."""
    assert _list_keys(aws, bucket, prefix) == []


def _list_keys(aws: Callable[..., Any], bucket: str, prefix: str) -> list[str]:
    contents = aws("s3").list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/").get("Contents")
    return [entry["Key"] for entry in contents or []]
