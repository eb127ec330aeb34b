"""Limits of a tenant, a warehouse and its namespaces are compared with a usage report."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.limits import TenantLimits, WarehouseLimits
from lakewright_spark.pyiceberg_client.file_sizes import TableSize
from lakewright_spark.pyiceberg_client.limit_checks import ComputeHours, LimitUse, list_limit_uses
from lakewright_spark.pyiceberg_client.table_details import TableDetails
from lakewright_spark.pyiceberg_client.usage import TableUsage, UsageReport, WarehouseUsage
from lakewright_spark.table_identifier import TableIdentifier

NOW = datetime(2026, 11, 27, tzinfo=UTC)
DETAILS = TableDetails(
    uuid="", location="", metadata_location="", format_version=2, schema_id=0, columns=1, updated_at=NOW
)
CONFIG = CatalogConfig.model_validate(
    {
        "kind": "rest",
        "tenant": "acme",
        "uri": "https://catalog.example",
        "limits": {"bytes": 1000, "tables": 3},
        "warehouses": [
            {"name": "a", "limits": {"files": 10, "namespaces": {"sales": {"bytes": 500, "tables": 5}}}},
            {"name": "b"},
        ],
    }
)


def build_usage(warehouse: str, **sizes: int) -> WarehouseUsage:
    """Return a warehouse with tables by the name of their namespace, of `bytes` live bytes each."""
    tables = [
        TableUsage(
            TableIdentifier(warehouse, tuple(space.split("__")), "t"),
            TableSize(bytes_live=size - 100, bytes_reclaimable=100, files=4),
            DETAILS,
        )
        for space, size in sizes.items()
    ]
    return WarehouseUsage(warehouse, None, tuple(tables), ())


def compare(*warehouses: WarehouseUsage) -> list[tuple[str, str, int, str]]:
    uses = list_limit_uses(CONFIG, UsageReport("acme", NOW, warehouses))
    return [(use.scope, use.quantity, use.used, use.state) for use in uses]


def test_each_limit_is_compared_with_its_part() -> None:
    usages = (build_usage("a", sales=300, sales__daily=200, salesmen=200), build_usage("b", raw=250))
    assert compare(*usages) == [
        ("tenant acme", "bytes", 950, "near"),
        ("tenant acme", "tables", 4, "reached"),
        ("warehouse a", "files", 12, "reached"),
        ("namespace a.sales", "bytes", 500, "reached"),
        ("namespace a.sales", "tables", 2, "below"),
    ]


def test_limit_of_a_namespace_ignores_case() -> None:
    """The server has the case of the first creation, and finds the namespace by each case."""
    uses = compare(build_usage("a", Sales=300, SALES__Daily=200))
    assert [use for use in uses if use[0] == "namespace a.sales"] == [
        ("namespace a.sales", "bytes", 500, "reached"),
        ("namespace a.sales", "tables", 2, "below"),
    ]


def test_unread_warehouses_are_not_below_a_limit() -> None:
    assert [scope for scope, *_ in compare(build_usage("a", sales=300))] == [
        "warehouse a",
        "namespace a.sales",
        "namespace a.sales",
    ]


@pytest.mark.parametrize(("hours", "state"), [(79.9, "below"), (80.0, "near"), (99.99, "near"), (100.0, "reached")])
def test_hours_of_computing_units_are_compared(hours: float, state: str) -> None:
    config = CONFIG.model_copy(update={"limits": TenantLimits(compute=100)})

    (use,) = [
        use
        for use in list_limit_uses(config, UsageReport("acme", NOW, ()), ComputeHours({"main": hours}))
        if use.quantity == "compute"
    ]

    assert (use.scope, use.warehouse, use.used, use.state) == (
        "computing units of tenant acme",
        None,
        int(hours),
        state,
    )


def test_unread_hours_are_not_below_the_limit() -> None:
    config = CONFIG.model_copy(update={"limits": TenantLimits(compute=100)})

    assert [use for use in list_limit_uses(config, UsageReport("acme", NOW, ())) if use.quantity == "compute"] == []


@pytest.mark.parametrize(("used", "state"), [(799, "below"), (800, "near"), (999, "near"), (1000, "reached")])
def test_states_at_their_borders(used: int, state: str) -> None:
    use = LimitUse("tenant acme", None, None, "bytes", 1000, used)
    assert (use.state, use.percent) == (state, used / 10)


def test_configurations_without_limits_have_no_new_keys() -> None:
    """Readers of the first release refuse keys that they do not know."""
    plain = CONFIG.model_copy(update={"limits": None, "warehouses": [CONFIG.warehouse("b")]})
    assert "limits" not in plain.to_json()
    assert CatalogConfig.from_json(CONFIG.to_json()) == CONFIG


def test_hours_of_a_warehouse_have_their_own_limit() -> None:
    warehouses = [
        CatalogWarehouse(name="main", limits=WarehouseLimits(compute=10)),
        CatalogWarehouse(name="raw", limits=WarehouseLimits(compute=5)),
    ]
    config = CONFIG.model_copy(update={"limits": TenantLimits(compute=100), "warehouses": warehouses})
    report = UsageReport("acme", NOW, ())

    def list_used(compute: ComputeHours) -> list[tuple[str | None, int, str]]:
        return [(use.warehouse, use.used, use.state) for use in list_limit_uses(config, report, compute)]

    assert list_used(ComputeHours({"main": 10.5})) == [
        (None, 10, "below"),
        ("main", 10, "reached"),
        ("raw", 0, "below"),
    ]
    # A pod that counts in `main` may belong to the warehouse that could not be read.
    assert list_used(ComputeHours({"main": 10.5}, is_complete=False)) == []
    assert list_used(ComputeHours({"main": 100.5}, is_complete=False)) == [(None, 100, "reached")]
