"""The warehouse that a run writes to: Design 1 and Design 2, the submitter's own warehouse, and grants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.errors import ConfigMissingError, WarehouseRefusedError
from lakewright_spark.policies.model import PolicyPattern
from lakewright_spark.run.permissions import check_shared, choose_run_warehouse
from lakewright_spark.table_identifier import TableIdentifier

ANN = CatalogWarehouse(name="anns", id="1", owner="ann")
BEN = CatalogWarehouse(name="bens", id="2", owner="ben", writers=("cleo",))
TEAM = CatalogWarehouse(name="team", id="3")


def unit(*warehouses: CatalogWarehouse) -> CatalogConfig:
    """Return the configuration of a computing unit with these warehouses."""
    return CatalogConfig(tenant="acme", uri="https://c.example", project_id="acme", warehouses=list(warehouses))


@pytest.mark.parametrize(
    ("warehouses", "submitter", "requested", "expected"),
    [
        # Design 1: the unit is bound to a warehouse at its creation.
        ([TEAM], None, None, "team"),
        ([TEAM], "ann", "team", "team"),
        ([ANN], "ann", None, "anns"),
        # Design 2: each execution chooses; the default is the submitter's own warehouse.
        ([ANN, BEN, TEAM], "ann", None, "anns"),
        ([ANN, BEN, TEAM], "ben", None, "bens"),
        ([ANN, BEN, TEAM], "ann", "team", "team"),
        # A grant.
        ([ANN, BEN, TEAM], "cleo", "bens", "bens"),
    ],
)
def test_warehouse_of_a_run(
    warehouses: list[CatalogWarehouse], submitter: str | None, requested: str | None, expected: str
) -> None:
    assert choose_run_warehouse(unit(*warehouses), submitter, requested).name == expected


@pytest.mark.parametrize(
    ("warehouses", "submitter", "requested", "reason"),
    [
        ([TEAM], None, "sales", "has no warehouse 'sales'.*it has: team"),  # not in the unit's list
        ([ANN, BEN], "ann", "bens", "warehouse bens is 'ben''s, and the run is submitted by 'ann'"),
        ([ANN], "ben", None, "who has no grant to write there"),  # a shared unit that is bound to its owner's warehouse
        ([ANN], None, None, "submitted by an unnamed submitter"),
    ],
)
def test_refused_warehouses(
    warehouses: list[CatalogWarehouse], submitter: str | None, requested: str | None, reason: str
) -> None:
    with pytest.raises(WarehouseRefusedError, match=reason):
        choose_run_warehouse(unit(*warehouses), submitter, requested)


def test_ended_grant_allows_no_run() -> None:
    now = datetime.now(UTC)
    ends = {"cleo": now - timedelta(minutes=1), "dora": now + timedelta(hours=1)}
    shared_warehouse = BEN.model_copy(update={"writers": ("cleo", "dora"), "writer_ends": ends})
    config = CatalogConfig.from_json(unit(shared_warehouse).to_json())

    assert choose_run_warehouse(config, "dora", "bens").name == "bens"
    with pytest.raises(WarehouseRefusedError, match="who has no grant to write there"):
        choose_run_warehouse(config, "cleo", "bens")
    properties = {"lakewright.policy.sharing": "false"}
    with pytest.raises(WarehouseRefusedError, match="not shared, by the table"):
        check_shared(config, TableIdentifier("bens", ("n",), "t"), properties, "cleo")


def test_several_warehouses_without_a_choice() -> None:
    with pytest.raises(ConfigMissingError, match="give --warehouse: anns, bens, team"):
        choose_run_warehouse(unit(ANN, BEN, TEAM), "dora", None)
    with pytest.raises(ConfigMissingError, match="several warehouses"):
        choose_run_warehouse(unit(TEAM, ANN, ANN.model_copy(update={"name": "anns2"})), "ann", None)


def test_run_reads_shared_results_of_other_warehouses() -> None:
    """The table's own policy or a pattern decides; the owner and users with write grants may always read."""
    pattern = PolicyPattern.model_validate({"match": "bens.*.*", "sharing": False})
    config = unit(ANN, BEN, TEAM).model_copy(update={"policies": (pattern,)})
    secret = TableIdentifier("bens", ("n",), "secret")

    for submitter in ("ben", "cleo"):
        check_shared(config, secret, {}, submitter)
    check_shared(config, secret, {"lakewright.policy.sharing": "true"}, "ann")
    check_shared(config, TableIdentifier("anns", ("n",), "t"), {}, "ben")
    check_shared(config, TableIdentifier("team", ("n",), "t"), {"lakewright.policy.sharing": "false"}, "ann")
    with pytest.raises(WarehouseRefusedError, match=r"table bens.n.secret is not shared, by bens.\*.\*.*by 'ann'"):
        check_shared(config, secret, {}, "ann")
    with pytest.raises(WarehouseRefusedError, match=r"not shared, by the table: .*an unnamed submitter"):
        check_shared(config, TableIdentifier("anns", ("n",), "t"), {"lakewright.policy.sharing": "false"}, None)
