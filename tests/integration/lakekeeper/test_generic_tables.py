"""Generic tables and tag definitions: their operations, the rights on them, and their first server version."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest

V1 = "/management/v1"
ANY_ID = str(uuid.uuid4())


@pytest.fixture(scope="module")
def generic_tables(people: Any, make_warehouse: Callable[..., str]) -> tuple[str, str]:
    """A warehouse with soft deletion, and the path of the generic tables of its namespace `n`."""
    warehouse = make_warehouse(people("root"), "generic", soft_delete_seconds=3600)
    people("root").post(f"/catalog/v1/{warehouse}/namespaces", json={"namespace": ["n"]}).raise_for_status()
    return warehouse, f"/lakekeeper/v1/{warehouse}/namespaces/n/generic-tables"


def create_generic_table(http: httpx.Client, path: str, name: str) -> str:
    body = {"name": name, "format": "lance", "doc": "vectors", "properties": {"owner": "x"}}
    http.post(path, json=body).raise_for_status()
    return next(identifier["id"] for identifier in http.get(path).json()["identifiers"] if identifier["name"] == name)


def test_create_list_load_rename_and_drop(people: Any, generic_tables: tuple[str, str]) -> None:
    root, (warehouse, path) = people("root"), generic_tables
    create_generic_table(root, path, "Vectors")
    response = root.get(f"{path}/vectors").json()
    location = response["table"].pop("base-location")
    assert location.startswith("s3://")
    expected = {"name": "Vectors", "format": "lance", "doc": "vectors", "properties": {"owner": "x"}}
    assert response == {"table": expected, "protected": False}
    assert root.get(f"/catalog/v1/{warehouse}/namespaces/n/tables").json()["identifiers"] == []
    taken = root.post(path, json={"name": "VECTORS", "format": "csv"})
    assert (taken.status_code, taken.json()["error"]["type"]) == (409, "AlreadyExistsException")
    names = {side: {"namespace": ["n"], "name": name} for side, name in (("source", "Vectors"), ("destination", "v2"))}
    assert root.post(f"/lakekeeper/v1/{warehouse}/generic-tables/rename", json=names).status_code == 204
    assert root.delete(f"{path}/v2?force=true").status_code == 204
    missing = root.get(f"{path}/v2")
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "NoSuchGenericTableException")


def test_soft_delete_and_restore(people: Any, generic_tables: tuple[str, str]) -> None:
    root, (warehouse, path) = people("root"), generic_tables
    table = create_generic_table(root, path, "soft")
    assert root.delete(f"{path}/soft").status_code == 204
    deleted = root.get(f"{V1}/warehouse/{warehouse}/deleted-tabulars").json()["tabulars"]
    assert [(tabular["id"], tabular["typ"]) for tabular in deleted] == [(table, "generic-table")]
    targets = {"targets": [{"type": "generic-table", "id": table}]}
    assert root.post(f"{V1}/warehouse/{warehouse}/deleted-tabulars/undrop", json=targets).status_code == 204
    assert root.get(f"{path}/soft").status_code == 200


def test_a_protected_table_is_dropped_by_force_alone(people: Any, generic_tables: tuple[str, str]) -> None:
    root, (warehouse, path) = people("root"), generic_tables
    table = create_generic_table(root, path, "kept")
    protection = f"{V1}/warehouse/{warehouse}/generic-table/{table}/protection"
    assert root.post(protection, json={"protected": True}).json()["protected"] is True
    refused = root.delete(f"{path}/kept")
    assert (refused.status_code, refused.json()["error"]["type"]) == (409, "ProtectedTabularDeletionWithoutForce")
    assert root.delete(f"{path}/kept?force=true").status_code == 204


def test_rights_on_a_generic_table_are_granted_and_required(people: Any, generic_tables: tuple[str, str]) -> None:
    root, (warehouse, path) = people("root"), generic_tables
    assignments_url = (
        f"{V1}/permissions/warehouse/{warehouse}/generic-table/{create_generic_table(root, path, 'rights')}/assignments"
    )
    ann = people(f"ann-{uuid.uuid4().hex[:8]}")
    assert ann.get(f"{path}/rights").status_code == 404
    user = f"oidc~{ann.headers['authorization'].removeprefix('Bearer ')}"
    writes = {"writes": [{"type": "describe", "user": user}]}
    assert root.post(assignments_url, json=writes).status_code == 204
    grant_entries = root.get(assignments_url).json()["assignments"]
    assert {"type": "describe", "user": user} in grant_entries
    assert {"type": "ownership", "user": "oidc~root"} in grant_entries
    assert ann.get(f"{path}/rights").status_code == 200
    refused = ann.delete(f"{path}/rights")
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "GenericTableActionForbidden")
    create = {"writes": [{"type": "create", "user": user}]}
    assert root.post(assignments_url, json=create).status_code == 422  # a table contains no objects


def test_tags_belong_to_projects_and_need_a_grant_to_apply(people: Any) -> None:
    root = people("root")
    body = {"name": f"pii-{uuid.uuid4().hex[:8]}", "scope": ["table"], "value-kind": "marker"}
    tag = root.post(f"{V1}/tag-definition", json=body)
    assert tag.status_code == 201
    assert root.post(f"{V1}/tag-definition", json=body).status_code == 409
    assert [definition["id"] for definition in _list_tags(root, body["name"].upper())] == [tag.json()["id"]]
    assignments_url = f"{V1}/permissions/tag/{tag.json()['id']}/assignments"
    writes = {"writes": [{"type": "apply", "user": "oidc~a"}]}
    assert root.post(assignments_url, json=writes).status_code == 204
    assert root.post(assignments_url, json=writes).json()["error"]["type"] == "TupleAlreadyExistsError"
    tag_assignments = root.get(assignments_url).json()["assignments"]
    assert tag_assignments == [{"type": "ownership", "user": "oidc~root"}, {"type": "apply", "user": "oidc~a"}]
    assert root.delete(f"{V1}/tag-definition/{tag.json()['id']}").status_code == 204
    assert _list_tags(root, body["name"]) == []
    response = root.get(f"{V1}/tag-definition/{tag.json()['id']}")
    assert (response.status_code, response.json()["error"]["type"]) == (404, "TagDefinitionNotFound")


@pytest.mark.parametrize("version", ["0.11", "0.13"])
def test_generic_tables_exist_since_0_13_and_tags_since_0_14(start_openfga: Any, version: str) -> None:
    root = start_openfga(version=version)("root")
    tag = root.get(f"{V1}/tag-definition")
    assert (tag.status_code, tag.content) == (404, b"")
    assert root.get(f"{V1}/permissions/tag/{ANY_ID}/assignments").content == b""
    for path in (
        f"/lakekeeper/v1/{ANY_ID}/namespaces/n/generic-tables",
        f"{V1}/warehouse/{ANY_ID}/generic-table/{ANY_ID}/protection",
    ):
        response = root.get(path)
        assert (response.status_code, response.content == b"") == (404, version == "0.11")


def _list_tags(http: httpx.Client, name: str) -> list[dict[str, Any]]:
    return http.get(f"{V1}/tag-definition", params={"name": name}).raise_for_status().json()["tag-definitions"]
