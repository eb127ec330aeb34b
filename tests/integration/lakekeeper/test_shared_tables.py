"""One table in two warehouses of a server: its id is unique in each warehouse alone, in all played releases."""

from __future__ import annotations

import gzip
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import httpx
import pytest
from lakewright_sandbox.lakekeeper.protocol.versions import Version

from tests.integration.lakekeeper.rules import get_refusal

V1 = "/management/v1"
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


@dataclass(frozen=True)
class SharedTable:
    """A table `a.t` that two warehouses with one location have, and the users of the server."""

    people: Any
    first: str
    second: str
    metadata_location: str
    id: str

    def load(self, user: str, warehouse: str) -> httpx.Response:
        return self.people(user).get(f"/catalog/v1/{warehouse}/namespaces/a/tables/t")

    def register(self, name: str, metadata_location: str) -> httpx.Response:
        body = {"name": name, "metadata-location": metadata_location}
        return self.people("root").post(f"/catalog/v1/{self.second}/namespaces/a/register", json=body)


@pytest.fixture(params=get_args(Version))
def shared(
    request: pytest.FixtureRequest, start_openfga: Callable[..., Any], make_warehouse: Callable[..., str]
) -> SharedTable:
    people, project, prefix = start_openfga(version=request.param), str(uuid.uuid4()), f"shared-{uuid.uuid4().hex}"
    root = people("root")
    root.post(f"{V1}/project", json={"project-id": project, "project-name": project}).raise_for_status()
    first = make_warehouse(root, "first", key_prefix=prefix)
    second = make_warehouse(root, "second", key_prefix=prefix, project_id=project)
    for warehouse in (first, second):
        root.post(f"/catalog/v1/{warehouse}/namespaces", json={"namespace": ["a"]}).raise_for_status()
    created = root.post(f"/catalog/v1/{first}/namespaces/a/tables", json={"name": "t", "schema": SCHEMA}).json()
    table = SharedTable(people, first, second, created["metadata-location"], created["metadata"]["table-uuid"])
    assert table.register("t", table.metadata_location).status_code == 200
    return table


def test_id_is_taken_within_its_warehouse(shared: SharedTable, aws: Any) -> None:
    """The metadata file of another location has the id, too."""
    bucket, _, key = shared.metadata_location.removeprefix("s3://").partition("/")
    client = aws.client("s3")
    document = json.loads(gzip.decompress(client.get_object(Bucket=bucket, Key=key)["Body"].read()))
    location = f"{document['location']}-copy"
    copy = f"{location}/metadata/00000-{uuid.uuid4()}.metadata.json"
    content = json.dumps(document | {"location": location}).encode()
    client.put_object(Bucket=bucket, Key=copy.removeprefix(f"s3://{bucket}/"), Body=content)
    for metadata_location in (copy, shared.metadata_location):
        assert get_refusal(shared.register("other", metadata_location)) == (409, "AlreadyExistsException")


def test_rights_protection_and_drops_are_apart(shared: SharedTable) -> None:
    root = shared.people("root")
    table = f"warehouse/{shared.second}/table/{shared.id}"
    grant = {"writes": [{"type": "select", "user": "oidc~ann"}]}
    assert root.post(f"{V1}/permissions/{table}/assignments", json=grant).status_code == 204
    assert [shared.load("ann", warehouse).status_code for warehouse in (shared.first, shared.second)] == [404, 200]

    root.post(f"{V1}/warehouse/{shared.first}/table/{shared.id}/protection", json={"protected": True})
    assert root.get(f"{V1}/{table}/protection").json()["protected"] is False
    path = f"/catalog/v1/{shared.second}/namespaces/a/tables/t"
    assert root.delete(path, params={"purgeRequested": False}).status_code == 204
    assert [shared.load("root", warehouse).status_code for warehouse in (shared.first, shared.second)] == [200, 404]
    assignments = root.get(f"{V1}/permissions/warehouse/{shared.first}/table/{shared.id}/assignments").json()
    assert [assignment["type"] for assignment in assignments["assignments"]] == ["ownership"]
