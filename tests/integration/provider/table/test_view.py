"""Views: a rename and a refresh never take over a view that another user made."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection.errors import NothingFoundError
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError, NotOwnedError
from lakewright.lakekeeper.view.resource import ViewProvider

from tests.integration.provider.resource import Props, Resource

SQL = {"spark": "SELECT 1 AS id"}


class OtherUser:
    """Another user of the namespace `sales`."""

    def __init__(self, http: httpx.Client, warehouse_id: str) -> None:
        self._http, self._catalog = http, f"/catalog/v1/{warehouse_id}"
        self._views = f"{self._catalog}/namespaces/sales/views"
        http.post(f"{self._catalog}/namespaces", json={"namespace": ["sales"]}).raise_for_status()

    def make_view(self, name: str) -> None:
        field = {"id": 1, "name": "id", "required": False, "type": "int"}
        query = {"type": "sql", "dialect": "spark", "sql": "SELECT 2 AS id"}
        version = {"version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "representations": [query]}
        schema = {"type": "struct", "schema-id": 0, "fields": [field]}
        body = {"name": name, "schema": schema, "view-version": version | {"default-namespace": ["sales"]}}
        self._http.post(self._views, json=body | {"properties": {}}).raise_for_status()

    def drop_view(self, name: str) -> None:
        self._http.delete(f"{self._views}/{name}").raise_for_status()

    def rename_view(self, name: str, new_name: str) -> None:
        source, destination = ({"namespace": ["sales"], "name": text} for text in (name, new_name))
        body = {"source": source, "destination": destination}
        self._http.post(f"{self._catalog}/views/rename", json=body).raise_for_status()

    def make_namespace(self, name: str) -> None:
        self._http.post(f"{self._catalog}/namespaces", json={"namespace": [name]}).raise_for_status()

    def read_current_version(self, name: str = "orders") -> Props:
        metadata = self._http.get(f"{self._views}/{name}").raise_for_status().json()["metadata"]
        return next(v for v in metadata["versions"] if v["version-id"] == metadata["current-version-id"])

    def remove_default_namespace(self) -> None:
        """Add a version without a default namespace, as some engines do."""
        version = self.read_current_version() | {"version-id": 9, "timestamp-ms": 2**41, "default-namespace": []}
        current = {"action": "set-current-view-version", "view-version-id": -1}
        body = {"updates": [{"action": "add-view-version", "view-version": version}, current]}
        self._http.post(f"{self._views}/orders", json=body).raise_for_status()

    def list_queries(self) -> dict[str, str]:
        """Return the query of each view by its name."""
        listed_views = self._http.get(self._views).raise_for_status().json()["identifiers"]
        return {entry["name"]: self._read_query(entry["name"]) for entry in listed_views}

    def _read_query(self, name: str) -> str:
        return self.read_current_version(name)["representations"][0]["sql"]


@pytest.fixture
def other_user(warehouse: Resource, http: httpx.Client) -> OtherUser:
    return OtherUser(http, warehouse.id)


@pytest.fixture
def view_props(warehouse: Resource, server: Props) -> Props:
    location = {"server": server, "warehouse_id": warehouse.id, "namespace": "sales", "name": "orders"}
    return location | {"columns": [{"name": "id", "type": "int"}], "sql": SQL}


@pytest.fixture
def view(other_user: OtherUser, view_props: Props) -> Resource:
    resource = Resource(ViewProvider())
    resource.up(**view_props)
    return resource


OURS, FOREIGN = "SELECT 1 AS id", "SELECT 2 AS id"


@pytest.mark.parametrize("dropped", [False, True])
def test_rename_onto_a_foreign_view_is_refused(
    view: Resource, view_props: Props, other_user: OtherUser, *, dropped: bool
) -> None:
    other_user.make_view("taken")
    if dropped:
        other_user.drop_view("orders")
    recorded_id = view.outs["view_id"]

    with pytest.raises(NotOwnedError, match=r"view `sales\.orders` .*cannot be renamed: .*the name `sales\.taken`"):
        view.up(**view_props | {"name": "taken"})

    assert view.outs["view_id"] == recorded_id
    assert other_user.list_queries() == {"taken": FOREIGN} | ({} if dropped else {"orders": OURS})


def test_rename_does_not_move_a_recreated_view(view: Resource, view_props: Props, other_user: OtherUser) -> None:
    other_user.drop_view("orders")
    other_user.make_view("orders")
    with pytest.raises(NotOwnedError, match="is another view now"):
        view.up(**view_props | {"name": "invoices"})
    assert other_user.list_queries() == {"orders": FOREIGN}


@pytest.mark.since("0.14")
def test_rename_onto_a_name_that_is_taken_is_refused(view: Resource, view_props: Props, other_user: OtherUser) -> None:
    other_user.make_view("taken")
    with pytest.raises(NotOwnedError, match="cannot be renamed"):
        view.up(**view_props | {"name": "taken"})
    assert other_user.list_queries() == {"orders": OURS, "taken": FOREIGN}


def test_rename_onto_a_table_is_refused(
    view: Resource, view_props: Props, warehouse: Resource, make_table: Any
) -> None:
    make_table(warehouse.id, "sales", "taken")
    with pytest.raises(NotOwnedError, match="cannot be renamed: another table or view"):
        view.up(**view_props | {"name": "taken"})


def test_rename_that_changes_case(view: Resource, view_props: Props, other_user: OtherUser) -> None:
    """Servers before 0.13 refuse it, and find the view by either spelling."""
    assert view.up(**view_props | {"name": "Orders"}) == "update"
    assert [(name.casefold(), query) for name, query in other_user.list_queries().items()] == [("orders", OURS)]


def test_interrupted_rename_is_completed(view: Resource, view_props: Props, other_user: OtherUser) -> None:
    other_user.rename_view("orders", "invoices")
    assert view.up(**view_props | {"name": "invoices"}) == "update"
    assert other_user.list_queries() == {"invoices": OURS}


def test_rename_of_a_dropped_view_reports_it(view: Resource, view_props: Props, other_user: OtherUser) -> None:
    other_user.drop_view("orders")
    with pytest.raises(DeletedOutsideStackError, match="no longer exists"):
        view.up(**view_props | {"name": "invoices"})


def test_recreated_view_is_not_changed_before_a_refresh(
    view: Resource, view_props: Props, other_user: OtherUser
) -> None:
    other_user.drop_view("orders")
    other_user.make_view("orders")
    with pytest.raises(NotOwnedError, match=r"is another view now .*`up --refresh`"):
        view.up(**view_props | {"properties": {"comment": "x"}})
    assert other_user.list_queries() == {"orders": FOREIGN}


def test_recreated_view_is_drift_until_the_next_up(view: Resource, view_props: Props, other_user: OtherUser) -> None:
    other_user.drop_view("orders")
    other_user.make_view("orders")
    recorded_id = view.outs["view_id"]
    assert [view.refresh(), view.refresh()] == ["update", "update"]
    (drift,) = view.outs["drift"]
    assert drift.startswith("recreated as ")

    assert view.up(**view_props) == "update"

    assert other_user.list_queries() == {"orders": OURS}
    assert view.outs["view_id"] == drift.removeprefix("recreated as ") != recorded_id
    assert view.refresh() == "same"
    view.destroy()
    assert other_user.list_queries() == {}


def test_recreated_view_is_not_dropped_after_a_refresh(view: Resource, other_user: OtherUser) -> None:
    other_user.drop_view("orders")
    other_user.make_view("orders")
    view.refresh()
    view.destroy()
    assert other_user.list_queries() == {"orders": FOREIGN}


@pytest.mark.usefixtures("moves_objects")
def test_view_moves_to_another_namespace(view: Resource, view_props: Props, other_user: OtherUser) -> None:
    other_user.make_namespace("archive")
    assert view.up(**view_props | {"namespace": "archive"}) == "update"
    assert view.refresh() == "same"
    assert other_user.list_queries() == {}


def test_default_namespace_is_spelled_as_on_the_server(
    view: Resource, view_props: Props, other_user: OtherUser
) -> None:
    other_user.make_namespace("Raw")
    assert view.up(**view_props | {"default_namespace": "raw"}) == "update"
    assert other_user.read_current_version()["default-namespace"] == ["Raw"]
    assert view.refresh() == "same"


def test_missing_default_namespace_is_refused(view: Resource, view_props: Props, other_user: OtherUser) -> None:
    with pytest.raises(NothingFoundError, match="default namespace `raw` does not exist"):
        view.up(**view_props | {"default_namespace": "raw"})
    assert other_user.read_current_version()["default-namespace"] == ["sales"]


def test_lost_default_namespace_is_drift_and_restored(view: Resource, view_props: Props, other_user: OtherUser) -> None:
    other_user.remove_default_namespace()
    assert [view.refresh(), view.refresh()] == ["update", "same"]
    assert view.outs["default_namespace"] == ""

    assert view.up(**view_props) == "update"
    assert other_user.read_current_version()["default-namespace"] == ["sales"]
    assert view.refresh() == "same"


def test_preview_refuses_properties_that_the_server_refuses(view_props: Props) -> None:
    failures = Resource(ViewProvider()).failures(**view_props, properties={"write.metadata.path": "s3://b/x"})
    assert "is refused by Lakekeeper" in failures["properties"]
