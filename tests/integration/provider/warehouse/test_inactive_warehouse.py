"""Drift inside a warehouse that another user deactivated: one `up --refresh` restores all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.grants.grant import GrantProvider
from lakewright.lakekeeper.grants.grants import GrantsProvider
from lakewright.lakekeeper.provider import inactive_warehouses as hidden
from lakewright.lakekeeper.provider.errors import HoldsTablesError
from lakewright.lakekeeper.table.resource import TableProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.lakekeeper.warehouse.task_queue_config import TaskQueueConfigProvider

from tests.integration.provider.resource import Props, Resource

COLUMNS = [{"name": "id", "type": "long"}]
USER = "oidc~ann"

pytestmark = [pytest.mark.since("0.14"), pytest.mark.stand_in("grants to a user that every run names alike")]


class InactiveWarehouse:
    """A stack's warehouse with every kind of object that an inactive warehouse hides, and another user's client."""

    def __init__(self, http: httpx.Client, warehouse_props: Props) -> None:
        self.http, server = http, warehouse_props["server"]
        self._project = {"x-project-id": warehouse_props["project_id"]}
        user = {"id": USER, "name": "Ann", "user-type": "human", "update-if-exists": True}
        http.post("/management/v1/user", json=user).raise_for_status()
        self.programs: dict[str, Props] = {"warehouse": warehouse_props | {"deletion": "purge"}}
        self.resources = {"warehouse": Resource(WarehouseProvider())}
        self.resources["warehouse"].up(**self.programs["warehouse"])
        self.id = self.resources["warehouse"].id
        warehouse_args = {"server": server, "warehouse_id": self.id}
        storage = warehouse_props["storage"]
        location = f"s3://{storage['bucket']}/{storage['key_prefix']}/sales"
        namespace_settings = {"location": location, "properties": {"owner": "a"}, "protected": False}
        target = {"type": "namespace", "warehouse_id": self.id, "namespace": "sales"}
        grant_entry = {"privilege": "get_metadata", "user": USER}
        self.add("namespace", NamespaceProvider(), warehouse_args | namespace_settings | {"name": "sales"})
        self.add("nested", NamespaceProvider(), warehouse_args | {"name": "sales.daily", "properties": {}})
        table = {"namespace": "sales", "name": "orders", "columns": COLUMNS, "properties": {"owner": "a"}}
        self.add("table", TableProvider(), warehouse_args | table)
        self.add("grant", GrantProvider(), {"server": server, "on": target, **grant_entry, "declared_as": "grant"})
        on_nested = {"server": server, "on": target | {"namespace": "sales.daily"}, "grants": [grant_entry]}
        self.add("grants", GrantsProvider(), on_nested | {"declared_as": "grants"})
        queue = {"queue": "tabular_purge", "max_seconds_since_last_heartbeat": 60}
        self.add("queue", TaskQueueConfigProvider(), warehouse_args | queue)

    def add(self, name: str, provider: Any, props: Props) -> None:
        self.programs[name], self.resources[name] = props, Resource(provider)
        self.resources[name].up(**props)

    def post(self, path: str, body: Props) -> None:
        self.http.post(path, json=body, headers=self._project).raise_for_status()

    def deactivate(self) -> None:
        self.post(f"/management/v1/warehouse/{self.id}/deactivate", {})

    def refresh(self) -> dict[str, str]:
        return {name: resource.refresh() for name, resource in self.resources.items()}

    def preview(self) -> dict[str, str]:
        return {name: resource.preview(**self.programs[name]) for name, resource in self.resources.items()}

    def up(self) -> dict[str, str]:
        return {name: resource.up(**self.programs[name]) for name, resource in self.resources.items()}

    # Changes of another user.

    def namespaces(self, path: str = "") -> str:
        return f"/catalog/v1/{self.id}/namespaces{path}"

    def change_the_namespace(self) -> None:
        self.post(self.namespaces("/sales/properties"), {"updates": {"owner": "z"}, "removals": []})

    def protect_the_namespace(self) -> None:
        namespace_id = self.resources["namespace"].outs["namespace_id"]
        path = f"/management/v1/warehouse/{self.id}/namespace/{namespace_id}/protection"
        self.post(path, {"protected": True})

    def drop_the_table(self) -> None:
        path = self.namespaces("/sales/tables/orders")
        self.http.delete(path, params={"purgeRequested": "true"}).raise_for_status()

    def drop_all(self) -> None:
        purged = {"recursive": "true", "force": "true", "purge": "true"}
        self.http.delete(self.namespaces("/sales"), params=purged).raise_for_status()

    def recreate_namespace(self) -> None:
        self.drop_all()
        self.post(self.namespaces(), {"namespace": ["sales"], "properties": {"owner": "z"}})

    def change_the_table(self) -> None:
        updates = [{"action": "set-properties", "updates": {"owner": "z"}}]
        self.post(self.namespaces("/sales/tables/orders"), {"requirements": [], "updates": updates})

    def rename_the_table(self) -> None:
        moved = {"namespace": ["sales"], "name": "elsewhere"}
        body = {"source": {"namespace": ["sales"], "name": "orders"}, "destination": moved}
        self.post(f"/catalog/v1/{self.id}/tables/rename", body)

    def revoke(self) -> None:
        for name in ("namespace", "nested"):
            namespace_id = self.resources[name].outs["namespace_id"]
            path = f"/management/v1/warehouse/{self.id}/namespace/{namespace_id}/grants"
            self.post(path, {"deletes": [{"privilege": "get_metadata", "principal": {"user": USER}}]})

    def configure(self) -> None:
        path = f"/management/v1/warehouse/{self.id}/task-queue/tabular_purge/config"
        self.post(path, {"queue-config": {}, "max-seconds-since-last-heartbeat": 7})


@pytest.fixture
def inactive_warehouse(http: httpx.Client, warehouse_props: Props) -> InactiveWarehouse:
    return InactiveWarehouse(http, warehouse_props)


OUTSIDE_CHANGES: dict[str, Callable[[InactiveWarehouse], None]] = {
    "nothing": lambda _: None,
    "a changed namespace": InactiveWarehouse.change_the_namespace,
    "a protected namespace": InactiveWarehouse.protect_the_namespace,
    "a dropped table": InactiveWarehouse.drop_the_table,
    "a changed table": InactiveWarehouse.change_the_table,
    "a renamed table": InactiveWarehouse.rename_the_table,
    "all dropped": InactiveWarehouse.drop_all,
    "recreated elsewhere": InactiveWarehouse.recreate_namespace,
    "grants taken back": InactiveWarehouse.revoke,
    "a queue": InactiveWarehouse.configure,
}


@pytest.mark.parametrize("change", OUTSIDE_CHANGES)
def test_one_refreshing_up_restores_hidden_objects(change: str, inactive_warehouse: InactiveWarehouse) -> None:
    OUTSIDE_CHANGES[change](inactive_warehouse)
    inactive_warehouse.deactivate()
    assert inactive_warehouse.refresh() == {
        name: "update" if name == "warehouse" else "same" for name in inactive_warehouse.programs
    }
    assert set(inactive_warehouse.preview().values()) == {"update"}, (
        "hidden objects are shown, since they may have changed"
    )
    assert set(inactive_warehouse.up().values()) == {"update"}
    assert not [name for name, resource in inactive_warehouse.resources.items() if hidden.MARK in resource.outs]
    assert set(inactive_warehouse.refresh().values()) == {"same"}
    assert set(inactive_warehouse.up().values()) == {"same"}
    assert inactive_warehouse.http.get(inactive_warehouse.namespaces("/sales")).json()["properties"]["owner"] == "a"


def test_soft_deleted_table_is_restored(inactive_warehouse: InactiveWarehouse) -> None:
    soft = {"delete_profile": {"type": "soft", "expiration_seconds": 600}}
    inactive_warehouse.programs["warehouse"] |= soft
    inactive_warehouse.up()
    table_id = inactive_warehouse.resources["table"].outs["table_id"]
    inactive_warehouse.drop_the_table()
    inactive_warehouse.deactivate()
    inactive_warehouse.refresh()
    inactive_warehouse.up()
    assert inactive_warehouse.resources["table"].outs["table_id"] == table_id
    assert set(inactive_warehouse.refresh().values()) == {"same"}


def test_declared_inactive_warehouse_reports_no_hidden_drift(
    inactive_warehouse: InactiveWarehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    """Differences that no `up` can fix are not reported."""
    inactive_warehouse.programs["warehouse"]["active"] = False
    inactive_warehouse.resources["warehouse"].up(**inactive_warehouse.programs["warehouse"])
    assert set(inactive_warehouse.refresh().values()) == {"same"}
    assert "cannot be seen while its warehouse" in capsys.readouterr().err
    assert set(inactive_warehouse.preview().values()) == {"same"}
    inactive_warehouse.programs["warehouse"]["active"] = True
    assert set(inactive_warehouse.preview().values()) == {"update"}
    assert set(inactive_warehouse.up().values()) == {"update"}
    assert set(inactive_warehouse.refresh().values()) == {"same"}


def test_warehouse_is_activated_before_the_next_up(inactive_warehouse: InactiveWarehouse) -> None:
    inactive_warehouse.change_the_namespace()
    inactive_warehouse.deactivate()
    inactive_warehouse.refresh()
    del inactive_warehouse.programs["warehouse"], inactive_warehouse.resources["warehouse"]
    assert set(inactive_warehouse.preview().values()) == {"same"}
    inactive_warehouse.post(f"/management/v1/warehouse/{inactive_warehouse.id}/activate", {})
    assert set(inactive_warehouse.up().values()) == {"update"}
    assert inactive_warehouse.http.get(inactive_warehouse.namespaces("/sales")).json()["properties"]["owner"] == "a"


def test_warehouse_with_hidden_tables_is_not_replaced(inactive_warehouse: InactiveWarehouse, make_table: Any) -> None:
    inactive_warehouse.recreate_namespace()
    make_table(inactive_warehouse.id, "sales", "of_others")
    inactive_warehouse.deactivate()
    inactive_warehouse.refresh()
    with pytest.raises(HoldsTablesError, match=r"would be replaced.*1 table: sales\.of_others"):
        inactive_warehouse.up()
