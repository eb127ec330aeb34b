"""Concurrent commits of `up` and of jobs: the provider builds on a job's commit while that is safe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.api.connection.errors import ConflictError
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError, EvolutionRefusedError
from lakewright.lakekeeper.table.resource import TableProvider
from typing_extensions import override

from tests.integration.provider.resource import Props, Resource

COLUMNS: list[Props] = [{"name": "id", "type": "int"}, {"name": "note", "type": "string"}]
MORE = [*COLUMNS, {"name": "price", "type": "long"}]


class RacingTransport(httpx.HTTPTransport):
    """A transport on which a job commits before each of the provider's first commits arrives."""

    def __init__(self, act: Callable[[], Any], times: int = 1) -> None:
        super().__init__()
        self.act, self.remaining, self.commits = act, times, 0

    @override
    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and b'"requirements"' in request.content:
            self.commits += 1
            if self.remaining:
                self.remaining -= 1
                self.act()
        return super().handle_request(request)


class Job:
    """Another user who changes the table outside the stack."""

    def __init__(self, http: httpx.Client, warehouse_id: str) -> None:
        self._http, self._url = http, f"/catalog/v1/{warehouse_id}/namespaces/sales/tables/orders"

    def fields(self) -> list[Props]:
        now = self._http.get(self._url).json()["metadata"]
        return next(schema["fields"] for schema in now["schemas"] if schema["schema-id"] == now["current-schema-id"])

    def columns(self) -> dict[str, int]:
        return {field["name"]: field["id"] for field in self.fields()}

    def commit(self, fields: list[Props]) -> None:
        schema = {"type": "struct", "schema-id": 9, "fields": fields}
        updates = [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]
        self._http.post(self._url, json={"requirements": [], "updates": updates}).raise_for_status()

    def add(self, name: str) -> None:
        number = max(self.columns().values()) + 1
        self.commit([*self.fields(), {"id": number, "name": name, "required": False, "type": "string"}])

    def drop(self) -> None:
        self._http.delete(self._url).raise_for_status()


@pytest.fixture
def job(http: httpx.Client, warehouse: Resource) -> Job:
    http.post(f"/catalog/v1/{warehouse.id}/namespaces", json={"namespace": ["sales"]}).raise_for_status()
    return Job(http, warehouse.id)


@pytest.fixture
def orders(server: Props, warehouse: Resource, job: Job) -> Props:
    return {
        "server": server,
        "warehouse_id": warehouse.id,
        "namespace": "sales",
        "name": "orders",
        "columns": COLUMNS,
    }


@pytest.fixture
def table(orders: Props) -> Resource:
    resource = Resource(TableProvider())
    resource.up(**orders)
    return resource


def test_concurrent_column_of_a_job_is_kept(table: Resource, orders: Props, job: Job, use_transport: Any) -> None:
    transport = use_transport(RacingTransport(lambda: job.add("extra")))

    assert table.up(**orders | {"columns": MORE}) == "update"

    assert transport.commits == 2
    assert job.columns() == {"id": 1, "note": 2, "extra": 3, "price": 4}
    assert table.outs["field_ids"]["price"] == 4


def test_change_made_unsafe_by_a_job_is_refused(table: Resource, orders: Props, job: Job, use_transport: Any) -> None:
    """The job's commit is kept."""
    id_, note = job.fields()
    use_transport(RacingTransport(lambda: job.commit([{**id_, "type": "long"}, note])))

    with pytest.raises(EvolutionRefusedError, match=r"`id`: long -> int would narrow it"):
        table.up(**orders | {"columns": MORE})

    assert job.columns() == {"id": 1, "note": 2}


def test_concurrently_dropped_table_is_reported(table: Resource, orders: Props, job: Job, use_transport: Any) -> None:
    def replace() -> None:
        job.drop()
        Resource(TableProvider()).up(**orders)

    use_transport(RacingTransport(replace))

    with pytest.raises(DeletedOutsideStackError, match=r"dropped, renamed or recreated during this change"):
        table.up(**orders | {"columns": MORE})


def test_repeated_conflicts_end_in_one_sentence(table: Resource, orders: Props, job: Job, use_transport: Any) -> None:
    names = iter(f"extra{number}" for number in range(99))
    transport = use_transport(RacingTransport(lambda: job.add(next(names)), times=99))

    with pytest.raises(
        ConflictError, match=r"POST /catalog/v1/.*/tables/orders at http://.* responded with 409 CatalogCommit"
    ):
        table.up(**orders | {"columns": MORE})

    assert transport.commits == 5
    assert "price" not in job.columns()


def test_commits_of_rows_or_properties_do_not_conflict(
    table: Resource, orders: Props, job: Job, http: httpx.Client, use_transport: Any
) -> None:
    update = {"action": "set-properties", "updates": {"written-by": "a job"}}
    url = f"/catalog/v1/{orders['warehouse_id']}/namespaces/sales/tables/orders"
    transport = use_transport(
        RacingTransport(lambda: http.post(url, json={"requirements": [], "updates": [update]}).raise_for_status())
    )

    table.up(**orders | {"columns": MORE, "properties": {"owner": "sales"}})

    assert transport.commits == 1
    properties = http.get(url).json()["metadata"]["properties"]
    assert properties == {"written-by": "a job", "owner": "sales"}
