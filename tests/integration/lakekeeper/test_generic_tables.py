"""Generic tables and tag definitions: their operations, the rights on them, and their first server version."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest

V1 = "/management/v1"
SOME = str(uuid.uuid4())


@pytest.fixture(scope="module")
def inside(people: Any, make_warehouse: Callable[..., str]) -> tuple[str, str]:
    """A warehouse that soft-deletes, and where the generic tables of its namespace `n` are."""
    warehouse = make_warehouse(people("root"), "generic", soft_delete_seconds=3600)
    people("root").post(f"/catalog/v1/{warehouse}/namespaces", json={"namespace": ["n"]}).raise_for_status()
    return warehouse, f"/lakekeeper/v1/{warehouse}/namespaces/n/generic-tables"


def made(http: httpx.Client, path: str, name: str) -> str:
    body = {"name": name, "format": "lance", "doc": "vectors", "properties": {"owner": "x"}}
    http.post(path, json=body).raise_for_status()
    return next(one["id"] for one in http.get(path).json()["identifiers"] if one["name"] == name)


def test_create_list_load_rename_and_drop(people: Any, inside: tuple[str, str]) -> None:
    root, (warehouse, path) = people("root"), inside
    made(root, path, "Vectors")
    found = root.get(f"{path}/vectors").json()
    location = found["table"].pop("base-location")
    assert location.startswith("s3://")
    expected = {"name": "Vectors", "format": "lance", "doc": "vectors", "properties": {"owner": "x"}}
    assert found == {"table": expected, "protected": False}
    assert root.get(f"/catalog/v1/{warehouse}/namespaces/n/tables").json()["identifiers"] == []
    taken = root.post(path, json={"name": "VECTORS", "format": "csv"})
    assert (taken.status_code, taken.json()["error"]["type"]) == (409, "AlreadyExistsException")
    names = {side: {"namespace": ["n"], "name": name} for side, name in (("source", "Vectors"), ("destination", "v2"))}
    assert root.post(f"/lakekeeper/v1/{warehouse}/generic-tables/rename", json=names).status_code == 204
    assert root.delete(f"{path}/v2?force=true").status_code == 204
    missing = root.get(f"{path}/v2")
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "NoSuchGenericTableException")


def test_soft_delete_and_restore(people: Any, inside: tuple[str, str]) -> None:
    root, (warehouse, path) = people("root"), inside
    table = made(root, path, "soft")
    assert root.delete(f"{path}/soft").status_code == 204
    deleted = root.get(f"{V1}/warehouse/{warehouse}/deleted-tabulars").json()["tabulars"]
    assert [(one["id"], one["typ"]) for one in deleted] == [(table, "generic-table")]
    targets = {"targets": [{"type": "generic-table", "id": table}]}
    assert root.post(f"{V1}/warehouse/{warehouse}/deleted-tabulars/undrop", json=targets).status_code == 204
    assert root.get(f"{path}/soft").status_code == 200


def test_a_protected_table_is_dropped_by_force_alone(people: Any, inside: tuple[str, str]) -> None:
    root, (warehouse, path) = people("root"), inside
    table = made(root, path, "kept")
    protection = f"{V1}/warehouse/{warehouse}/generic-table/{table}/protection"
    assert root.post(protection, json={"protected": True}).json()["protected"] is True
    refused = root.delete(f"{path}/kept")
    assert (refused.status_code, refused.json()["error"]["type"]) == (409, "ProtectedTabularDeletionWithoutForce")
    assert root.delete(f"{path}/kept?force=true").status_code == 204


def test_rights_on_a_generic_table_are_granted_and_required(people: Any, inside: tuple[str, str]) -> None:
    root, (warehouse, path) = people("root"), inside
    assignments = f"{V1}/permissions/warehouse/{warehouse}/generic-table/{made(root, path, 'rights')}/assignments"
    ann = people(f"ann-{uuid.uuid4().hex[:8]}")
    assert ann.get(f"{path}/rights").status_code == 404
    user = f"oidc~{ann.headers['authorization'].removeprefix('Bearer ')}"
    writes = {"writes": [{"type": "describe", "user": user}]}
    assert root.post(assignments, json=writes).status_code == 204
    held = root.get(assignments).json()["assignments"]
    assert {"type": "describe", "user": user} in held
    assert {"type": "ownership", "user": "oidc~root"} in held
    assert ann.get(f"{path}/rights").status_code == 200
    refused = ann.delete(f"{path}/rights")
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "GenericTableActionForbidden")
    create = {"writes": [{"type": "create", "user": user}]}
    assert root.post(assignments, json=create).status_code == 422  # nothing is made in a table


def test_tags_belong_to_projects_and_need_a_grant_to_apply(people: Any) -> None:
    root = people("root")
    body = {"name": f"pii-{uuid.uuid4().hex[:8]}", "scope": ["table"], "value-kind": "marker"}
    tag = root.post(f"{V1}/tag-definition", json=body)
    assert tag.status_code == 201
    assert root.post(f"{V1}/tag-definition", json=body).status_code == 409
    assert [one["id"] for one in _named(root, body["name"].upper())] == [tag.json()["id"]]
    assignments = f"{V1}/permissions/tag/{tag.json()['id']}/assignments"
    writes = {"writes": [{"type": "apply", "user": "oidc~a"}]}
    assert root.post(assignments, json=writes).status_code == 204
    assert root.post(assignments, json=writes).json()["error"]["type"] == "TupleAlreadyExistsError"
    held = root.get(assignments).json()["assignments"]
    assert held == [{"type": "ownership", "user": "oidc~root"}, {"type": "apply", "user": "oidc~a"}]
    assert root.delete(f"{V1}/tag-definition/{tag.json()['id']}").status_code == 204
    assert _named(root, body["name"]) == []
    gone = root.get(f"{V1}/tag-definition/{tag.json()['id']}")
    assert (gone.status_code, gone.json()["error"]["type"]) == (404, "TagDefinitionNotFound")


@pytest.mark.parametrize("version", ["0.11", "0.13"])
def test_generic_tables_came_with_0_13_and_tags_with_0_14(start_openfga: Any, version: str) -> None:
    root = start_openfga(version=version)("root")
    tag = root.get(f"{V1}/tag-definition")
    assert (tag.status_code, tag.content) == (404, b"")
    assert root.get(f"{V1}/permissions/tag/{SOME}/assignments").content == b""
    for path in (
        f"/lakekeeper/v1/{SOME}/namespaces/n/generic-tables",
        f"{V1}/warehouse/{SOME}/generic-table/{SOME}/protection",
    ):
        response = root.get(path)
        assert (response.status_code, response.content == b"") == (404, version == "0.11")


def _named(http: httpx.Client, name: str) -> list[dict[str, Any]]:
    return http.get(f"{V1}/tag-definition", params={"name": name}).raise_for_status().json()["tag-definitions"]
