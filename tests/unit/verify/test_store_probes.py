"""Probes at S3 against responses that only AWS gives."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from lakewright.client_access.catalog_access import CatalogAccess, CatalogResponse
from lakewright.client_access.check import Attempt
from lakewright.client_access.object_store import StoreAddress, StoreResponse
from lakewright.client_access.probe_table import ABANDONED_AFTER, CREATED, PREFIX, Location, WarehouseTables
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.verify.probes.table_access import probe_other_tables

METADATA = "acme/executions/2/metadata/0.metadata.json"


class ReadingStore:
    """S3 for a credential that may read all objects of the bucket, and not list them."""

    def send(self, method: str, _bucket: str, key: str = "", **_options: Any) -> StoreResponse:
        is_readable = method == "GET" and key == METADATA
        return StoreResponse(200) if is_readable else StoreResponse(403, "AccessDenied")


def test_credential_that_reads_another_table_fails() -> None:
    """S3 denies a missing object to a credential that may not list, also if it may read."""
    tables = {
        "first": SimpleNamespace(store=ReadingStore()),
        "second": SimpleNamespace(
            location=Location("lake", "acme/executions/2"), metadata_file=Location("lake", METADATA)
        ),
    }
    warehouse = SimpleNamespace(name="executions", delegation="vended")
    session = SimpleNamespace(warehouse=warehouse, ensure_table=tables.__getitem__)

    attempts = [outcome for outcome in probe_other_tables(cast(Any, session)) if isinstance(outcome, Attempt)]

    assert [attempt.attempt for attempt in attempts if attempt.result == "allowed"] == ["read files of another table"]


def test_bucket_in_another_region_is_asked_there() -> None:
    aws = StoreAddress("eu-west-1", None, path_style=False)
    store = StoreAddress("local-01", "https://store.example", path_style=True)

    assert aws.with_region("us-west-2").build_url("lake", "a") == "https://lake.s3.us-west-2.amazonaws.com/a"
    assert store.with_region("us-west-2") == store


@pytest.mark.parametrize("may_delete", [True, False])
def test_clean_up_purges_only_where_it_may(*, may_delete: bool) -> None:
    sent: list[dict[str, Any]] = []

    def request(_method: str, _path: str, *, params: dict[str, Any], **_options: Any) -> CatalogResponse:
        sent.append(params)
        return CatalogResponse(204)

    warehouse = SimpleNamespace(id="1", name="executions", delegation="vended", may_delete=may_delete)
    tables = WarehouseTables(cast(Any, SimpleNamespace(request=request)), cast(Any, warehouse), "acme", cast(Any, None))
    tables.drop_namespace("lakewright_verify_1")

    assert [params["purge"] for params in sent] == [may_delete]


def test_abandoned_namespaces_of_all_pages_are_dropped() -> None:
    """The server returns one namespace on each page."""
    old = str(int(time.time()) - ABANDONED_AFTER - 60)
    names = [f"{PREFIX}1", "results", f"{PREFIX}2"]
    dropped: list[str] = []

    def respond(request: httpx.Request) -> httpx.Response:
        name = request.url.path.rpartition("/")[2]
        if request.method == "DELETE":
            dropped.append(name)
            return httpx.Response(204)
        if name in names:
            return httpx.Response(200, json={"namespace": [name], "properties": {CREATED: old}})
        page = int(request.url.params.get("pageToken") or 0)
        token = {"next-page-token": str(page + 1)} if page + 1 < len(names) else {}
        return httpx.Response(200, json={"namespaces": [[names[page]]], **token})

    client = Client(ServerRef(endpoint="http://lake.test"), str, transport=httpx.MockTransport(respond))
    warehouse = SimpleNamespace(id="1", name="executions", delegation="vended", may_delete=True)
    tables = WarehouseTables(CatalogAccess(client), cast(Any, warehouse), "acme", cast(Any, None))

    tables.drop_abandoned()

    assert dropped == [f"{PREFIX}1", f"{PREFIX}2"]
