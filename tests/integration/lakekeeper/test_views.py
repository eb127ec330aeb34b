"""Views beyond the recordings: default namespaces and properties."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
import pytest

from tests.integration.lakekeeper.conftest import VIEW
from tests.integration.lakekeeper.rules import get_refusal


class ViewsOfWarehouse:
    """Requests for views of one warehouse, in a namespace `NAME-views`, beside a namespace `NAME`."""

    def __init__(self, client: httpx.Client, warehouse: str) -> None:
        self.client, self.name = client, f"n{uuid.uuid4().hex[:8]}"
        self.namespaces = f"/catalog/v1/{warehouse}/namespaces"
        self.views = f"{self.namespaces}/{self.name}-views/views"
        for namespace in (self.name, f"{self.name}-views"):
            client.post(self.namespaces, json={"namespace": [namespace]}).raise_for_status()

    def create(self, default_namespace: list[str], **fields: Any) -> httpx.Response:
        version = VIEW["view-version"] | {"default-namespace": default_namespace}
        return self.client.post(self.views, json=VIEW | {"view-version": version} | fields)

    def commit(self, *updates: dict[str, Any]) -> httpx.Response:
        return self.client.post(f"{self.views}/v", json={"requirements": [], "updates": updates})

    def set_default_namespace(self, path: list[str]) -> None:
        version = VIEW["view-version"] | {"version-id": 2, "timestamp-ms": 2**41, "default-namespace": path}
        current = {"action": "set-current-view-version", "view-version-id": -1}
        self.commit({"action": "add-view-version", "view-version": version}, current).raise_for_status()

    def load(self) -> dict[str, Any]:
        return self.client.get(f"{self.views}/v").raise_for_status().json()["metadata"]

    def drop(self, **params: str) -> None:
        self.client.delete(f"{self.views}/v", params=params).raise_for_status()

    def drop_namespace(self, **params: str) -> httpx.Response:
        return self.client.delete(f"{self.namespaces}/{self.name}", params=params)


@pytest.fixture(scope="module")
def warehouse(lakekeeper: httpx.Client, make_warehouse: Any) -> str:
    return make_warehouse(lakekeeper, "views", soft_delete_seconds=3600)


@pytest.fixture
def views(lakekeeper: httpx.Client, warehouse: str) -> ViewsOfWarehouse:
    return ViewsOfWarehouse(lakekeeper, warehouse)


@pytest.mark.parametrize("drop", [{}, {"recursive": "true", "force": "true"}], ids=["empty", "recursive"])
def test_default_namespace_of_a_view_is_not_dropped(views: ViewsOfWarehouse, drop: dict[str, str]) -> None:
    """Earlier versions of the view count, and the view also while it can be restored."""
    views.create([views.name]).raise_for_status()
    refused = (409, "NamespaceNotEmptyException")
    assert get_refusal(views.drop_namespace(**drop)) == refused

    views.set_default_namespace([f"{views.name}-views"])
    assert get_refusal(views.drop_namespace(**drop)) == refused
    views.drop()
    assert get_refusal(views.drop_namespace(**drop)) == refused


def test_dropped_view_releases_its_default_namespace(views: ViewsOfWarehouse) -> None:
    views.create([views.name]).raise_for_status()
    views.drop(force="true")
    assert views.drop_namespace().status_code == 204


def test_namespace_is_dropped_with_its_views(views: ViewsOfWarehouse) -> None:
    views.create([f"{views.name}-views"]).raise_for_status()
    response = views.client.delete(
        f"{views.namespaces}/{views.name}-views", params={"recursive": "true", "force": "true"}
    )
    assert response.status_code == 204


def test_default_namespace_in_another_case_is_lost(views: ViewsOfWarehouse) -> None:
    requested = [views.name.upper()]
    created = views.create(requested).raise_for_status().json()["metadata"]
    assert created["versions"][0]["default-namespace"] == requested
    assert views.load()["versions"][0]["default-namespace"] == []

    views.set_default_namespace([views.name])
    assert [version["default-namespace"] for version in views.load()["versions"]] == [[], [views.name]]


@pytest.mark.parametrize(
    ("properties", "kind"),
    [
        ({"write.metadata.path": "s3://b/x"}, (409, "FailedToSetProperties")),
        ({"write.data.path": "s3://b/x"}, (409, "FailedToSetProperties")),
        ({"write.metadata.compression-codec": "zstd"}, (400, "UnsupportedCompressionCodec")),
    ],
    ids=str,
)
def test_unsupported_view_properties_are_refused(
    views: ViewsOfWarehouse, properties: dict[str, str], kind: tuple[int, str]
) -> None:
    assert get_refusal(views.create([], properties=properties)) == kind
    views.create([]).raise_for_status()
    assert get_refusal(views.commit({"action": "set-properties", "updates": properties})) == kind
