"""Moves to another namespace: under OpenFGA, the grants of the former namespace would still apply."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.lakekeeper.api.connection.errors import UnsupportedServerError
from lakewright.lakekeeper.table.resource import TableProvider
from lakewright.lakekeeper.view.resource import ViewProvider

from tests.integration.provider.ground import PreparedProject
from tests.integration.provider.resource import Props, Resource

pytestmark = pytest.mark.parametrize("authorizer_server", ["openfga"], indirect=True, scope="session")

MOVED = "moved from namespace `Sales`, whose grants still apply to it"


@pytest.fixture
def args(private_ground: PreparedProject) -> Props:
    """Properties of a table or view in a warehouse with the namespaces `Sales` and `Archive`."""
    private_ground.post(f"/catalog/v1/{private_ground.warehouse_id}/namespaces", {"namespace": ["Archive"]})
    parent = {"server": private_ground.server, "warehouse_id": private_ground.warehouse_id, "namespace": "Sales"}
    return parent | {"name": "invoices", "columns": [{"name": "id", "type": "long"}]}


@pytest.fixture
def table(args: Props) -> Resource:
    resource = Resource(TableProvider())
    resource.up(**args)
    return resource


def move_table(ground: PreparedProject, source_name: str = "Sales", destination_name: str = "Archive") -> None:
    source, destination = ({"namespace": [name], "name": "invoices"} for name in (source_name, destination_name))
    ground.post(f"/catalog/v1/{ground.warehouse_id}/tables/rename", {"source": source, "destination": destination})


@pytest.mark.parametrize(
    ("provider", "properties", "advice"),
    [
        (TableProvider, {}, "lakekeeper openfga reconcile"),
        (ViewProvider, {"sql": {"spark": "SELECT 1 AS id"}}, "Remove `renamed_from`"),
    ],
    ids=["table", "view"],
)
def test_preview_refuses_a_move(args: Props, provider: Any, properties: Props, advice: str) -> None:
    resource = Resource(provider())
    resource.up(**args, **properties)
    with pytest.raises(UnsupportedServerError, match=rf"grants on `Sales` would still apply to it.*{advice}"):
        resource.preview(**args | properties | {"namespace": "Archive"})

    assert resource.up(**args | properties | {"namespace": "sales", "name": "bills"}) == "update"
    assert resource.refresh() == "same"


def test_table_moved_by_a_job_is_moved_back(table: Resource, args: Props, private_ground: PreparedProject) -> None:
    move_table(private_ground)
    for _ in range(2):
        assert table.refresh() == "update"
        assert (table.outs["namespace"], table.outs["drift"]) == ("Archive", [MOVED])

    assert table.up(**args) == "update"
    assert table.refresh() == "same"


def test_table_moved_by_an_administrator(table: Resource, args: Props, private_ground: PreparedProject) -> None:
    move_table(private_ground)
    table.refresh()

    assert table.up(**args | {"namespace": "Archive"}) == "update"
    assert table.outs["drift"] == []
    assert table.refresh() == "same"


def test_refresh_does_not_fail_after_a_second_move(
    table: Resource, args: Props, private_ground: PreparedProject
) -> None:
    private_ground.post(f"/catalog/v1/{private_ground.warehouse_id}/namespaces", {"namespace": ["Third"]})
    for source, destination in (("Sales", "Archive"), ("Archive", "Third"), ("Third", "Sales"), ("Sales", "Archive")):
        move_table(private_ground, source, destination)
        assert table.refresh() == "update"
        assert table.outs["namespace"] == destination

    assert table.up(**args | {"namespace": "sales"}) == "update"
    assert table.refresh() == "same"


def test_moved_and_dropped_table_is_restored(table: Resource, args: Props, private_ground: PreparedProject) -> None:
    profile = {"delete-profile": {"type": "soft", "expiration-seconds": 86400}}
    private_ground.post(f"/management/v1/warehouse/{private_ground.warehouse_id}/delete-profile", profile)
    move_table(private_ground)
    table.refresh()
    path = f"/catalog/v1/{private_ground.warehouse_id}/namespaces/Archive/tables/invoices"
    private_ground.http.delete(path).raise_for_status()
    assert table.refresh() == "update"

    assert table.up(**args) == "update"
    assert table.outs["namespace"] == "Sales"
