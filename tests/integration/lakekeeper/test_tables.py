"""Tables and views under concurrency, repeated requests, invalid requests and paging."""

from __future__ import annotations

import gzip
import json
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.integration.lakekeeper.rules import get_refusal

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


class TableNamespace:
    """A separate namespace of a warehouse, and requests in it."""

    def __init__(self, client: httpx.Client, warehouse: str) -> None:
        self.client, self.warehouse = client, warehouse
        self.name = f"n{uuid.uuid4().hex[:8]}"
        self.base = f"/catalog/v1/{warehouse}"
        self.path = f"{self.base}/namespaces/{self.name}"
        client.post(f"{self.base}/namespaces", json={"namespace": [self.name]}).raise_for_status()

    def create(self, name: str, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        return self.client.post(f"{self.path}/tables", json={"name": name, "schema": SCHEMA} | more, headers=headers)

    def commit(self, name: str, *updates: dict[str, Any], requirements: list[dict[str, Any]] | None = None) -> Any:
        body = {"requirements": requirements or [], "updates": updates}
        return self.client.post(f"{self.path}/tables/{name}", json=body)

    def load(self, name: str, **options: Any) -> httpx.Response:
        return self.client.get(f"{self.path}/tables/{name}", **options)


@pytest.fixture(scope="module")
def warehouse(lakekeeper: httpx.Client, make_warehouse: Any) -> str:
    return make_warehouse(lakekeeper, "tables")


@pytest.fixture
def namespace(lakekeeper: httpx.Client, warehouse: str) -> TableNamespace:
    return TableNamespace(lakekeeper, warehouse)


def set_property(key: str, value: str) -> dict[str, Any]:
    return {"action": "set-properties", "updates": {key: value}}


def test_concurrent_commits_all_take_effect(namespace: TableNamespace) -> None:
    namespace.create("t")
    with ThreadPoolExecutor(4) as pool:
        responses = list(pool.map(lambda n: namespace.commit("t", set_property(f"k{n}", "v")), range(4)))
    assert [response.status_code for response in responses] == [200] * 4
    metadata = namespace.load("t").json()["metadata"]
    assert set(metadata["properties"]) == {f"k{number}" for number in range(4)}
    assert len(metadata["metadata-log"]) == 4


def test_one_of_many_concurrent_creates_wins(namespace: TableNamespace) -> None:
    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(lambda _: namespace.create("t"), range(8)))
    assert Counter(response.status_code for response in responses) == {200: 1, 409: 7}


def test_the_metadata_file_equals_the_response(namespace: TableNamespace, aws: Any) -> None:
    created = namespace.create("t", properties={"a": "b"}).json()
    bucket, _, key = created["metadata-location"].removeprefix("s3://").partition("/")
    stored = aws.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    assert json.loads(gzip.decompress(stored)) == created["metadata"]


def test_old_metadata_files_are_deleted_if_the_table_says_so(namespace: TableNamespace, aws: Any) -> None:
    keep = {"write.metadata.previous-versions-max": "2", "write.metadata.delete-after-commit.enabled": "true"}
    location = namespace.create("t", properties=keep).json()["metadata"]["location"]
    for number in range(5):
        namespace.commit("t", set_property("k", str(number)))
    bucket, _, key = location.removeprefix("s3://").partition("/")
    response = aws.client("s3").list_objects_v2(Bucket=bucket, Prefix=f"{key}/metadata/")
    assert response["KeyCount"] == 3
    assert len(namespace.load("t").json()["metadata"]["metadata-log"]) == 2


def test_a_transaction_is_atomic(namespace: TableNamespace) -> None:
    for name in ("a", "b"):
        namespace.create(name)

    def change(name: str, *requirements: dict[str, Any]) -> dict[str, Any]:
        identifier = {"namespace": [namespace.name], "name": name}
        return {"identifier": identifier, "requirements": requirements, "updates": [set_property("k", "v")]}

    never = {"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}
    url = f"{namespace.base}/transactions/commit"
    failed = namespace.client.post(url, json={"table-changes": [change("a"), change("b", never)]})
    assert get_refusal(failed) == (409, "CatalogCommitConflicts")
    assert "properties" not in namespace.load("a").json()["metadata"]
    committed = namespace.client.post(url, json={"table-changes": [change("a"), change("b")]})
    assert (committed.status_code, committed.content) == (200, b"")
    assert [namespace.load(name).json()["metadata"]["properties"] for name in ("a", "b")] == [{"k": "v"}] * 2


def test_a_repeated_request_with_its_key_runs_once(namespace: TableNamespace) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first, second = namespace.create("t", headers=key), namespace.create("t", headers=key)
    assert first.status_code == second.status_code == 200
    assert second.json()["metadata"] == first.json()["metadata"]
    assert second.json()["config"]["s3.access-key-id"]
    assert get_refusal(namespace.create("t")) == (409, "AlreadyExistsException")
    other = {"Idempotency-Key": str(uuid.uuid4())}
    dropped = [namespace.client.delete(f"{namespace.path}/tables/t", headers=other) for _ in range(2)]
    assert [response.status_code for response in dropped] == [204, 204]
    reused = namespace.client.delete(f"{namespace.path}/tables/t", headers=key)
    assert get_refusal(reused) == (400, "IdempotencyKeyReused")
    assert get_refusal(namespace.create("u", headers={"Idempotency-Key": "no"})) == (400, "InvalidIdempotencyKey")


def test_a_failed_request_may_be_retried_with_its_key(namespace: TableNamespace) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    assert get_refusal(namespace.create("bad+name", headers=key)) == (400, "InvalidTableName")
    assert namespace.create("good", headers=key).status_code == 200


def test_an_unchanged_table_is_sent_once(namespace: TableNamespace) -> None:
    namespace.create("t")
    tag = namespace.load("t").headers["etag"]
    assert namespace.load("t", headers={"If-None-Match": tag}).status_code == 304
    namespace.commit("t", set_property("k", "v"))
    assert namespace.load("t", headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3://elsewhere/t", (400, "InvalidLocation")),
        ("{base}", (400, "InvalidLocation")),
        ("{base}-not/t", (400, "InvalidLocation")),
        ("{base}/../t", (400, "InvalidTableLocation")),
        ("{base}/./t", (400, "InvalidTableLocation")),
        ("{base}/a//t", (400, "InvalidTableLocation")),
        ("{base}/a\tb", (400, "InvalidTableLocation")),
        ("{base}/a\u200bb", (400, "InvalidTableLocation")),
        ("{base}/a#b", (400, "InvalidTableLocation")),
        ("s3a{base_rest}/t", (400, "InvalidLocation")),
        ("{taken}", (409, "LocationAlreadyTaken")),
        ("{taken}/inner", (409, "LocationAlreadyTaken")),
    ],
)
def test_locations_are_kept_apart(namespace: TableNamespace, location: str, expected: tuple[int, str]) -> None:
    taken = namespace.create("first").json()["metadata"]["location"]
    base = taken.rpartition("/")[0]
    location_to_take = location.format(taken=taken, base=base, base_rest=base.removeprefix("s3"))
    assert get_refusal(namespace.create("second", location=location_to_take)) == expected


def test_underscore_of_a_location_matches_any_character(namespace: TableNamespace) -> None:
    base = namespace.create("first").json()["metadata"]["location"].rpartition("/")[0]
    part = f"{base}/{namespace.name}"
    namespace.create("second", location=f"{part}-a/t").raise_for_status()
    assert get_refusal(namespace.create("third", location=f"{part}_a")) == (409, "LocationAlreadyTaken")
    assert namespace.create("fourth", location=f"{part}-A").status_code == 200


def test_staged_table_holds_its_location(namespace: TableNamespace) -> None:
    base = namespace.create("first").json()["metadata"]["location"].rpartition("/")[0]
    location = f"{base}/{namespace.name}"
    staged = {"stage-create": True, "location": location}
    namespace.create("staged", **staged).raise_for_status()
    assert get_refusal(namespace.create("second", location=f"{location}/t")) == (409, "LocationAlreadyTaken")
    assert namespace.create("staged", location=location).status_code == 200


def test_location_is_taken_under_every_scheme(lakekeeper: httpx.Client, make_warehouse: Any) -> None:
    warehouse = make_warehouse(lakekeeper, f"schemes-{uuid.uuid4().hex[:8]}", allow_alternative_protocols=True)
    namespace = TableNamespace(lakekeeper, warehouse)
    taken = namespace.create("first").json()["metadata"]["location"]
    response = namespace.create("second", location=f"s3a{taken.removeprefix('s3')}/t")
    assert get_refusal(response) == (409, "LocationAlreadyTaken")


def test_names_in_locations_are_percent_encoded(lakekeeper: httpx.Client, make_warehouse: Any) -> None:
    layout = {"type": "tabular-only", "tabular": "{name}"}
    warehouse = make_warehouse(lakekeeper, f"names-{uuid.uuid4().hex[:8]}", storage_layout=layout)
    location = TableNamespace(lakekeeper, warehouse).create("a b/ä").json()["metadata"]["location"]
    assert location.rpartition("/")[2] == "a%20b%2F%C3%A4"


def test_a_custom_location_below_the_warehouse(namespace: TableNamespace) -> None:
    base = namespace.create("first").json()["metadata"]["location"].rpartition("/")[0]
    expected_location = f"{base}/by-hand/{namespace.name}"
    assert (
        namespace.create("second", location=expected_location + "/").json()["metadata"]["location"] == expected_location
    )


@pytest.mark.parametrize(
    ("update", "kind"),
    [
        ({"action": "set-current-schema", "schema-id": 7}, "InvalidTableUpdate"),
        ({"action": "set-current-schema", "schema-id": -1}, "InvalidTableUpdate"),
        ({"action": "upgrade-format-version", "format-version": 1}, "InvalidTableUpdate"),
        ({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1}, "InvalidTableUpdate"),
        ({"action": "assign-uuid", "uuid": str(uuid.uuid4())}, "InvalidTableUpdate"),
        ({"action": "set-location", "location": "s3://elsewhere/t"}, "SetLocationNotAllowed"),
    ],
)
def test_invalid_updates_are_refused(namespace: TableNamespace, update: dict[str, Any], kind: str) -> None:
    namespace.create("t")
    assert get_refusal(namespace.commit("t", update)) == (400, kind)


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        (
            {"action": "invent"},
            "updates[0].action: unknown variant `invent`, expected one of `upgrade-format-version`, ",
        ),
        ({"action": 1}, "updates[0]: invalid type: integer `1`, expected variant identifier at"),
        ({"location": "s3://x"}, "updates[0]: missing field `action` at"),
        ({"action": "set-properties"}, "updates[0]: missing field `updates` at"),
        ({"action": "set-properties", "updates": 1}, "updates[0]: invalid type: integer `1`, expected a map at"),
    ],
)
def test_malformed_updates_are_422_in_plain_text(
    namespace: TableNamespace, update: dict[str, Any], reason: str
) -> None:
    namespace.create("t")
    response = namespace.commit("t", update)
    assert (response.status_code, response.headers["content-type"]) == (422, "text/plain; charset=utf-8")
    assert response.text.startswith(f"Failed to deserialize the JSON body into the target type: {reason}")


def test_fields_are_numbered_by_the_server(namespace: TableNamespace) -> None:
    schema = {
        "type": "struct",
        "identifier-field-ids": [40],
        "fields": [
            {"id": 40, "name": "id", "required": True, "type": "long"},
            {
                "id": 10,
                "name": "tags",
                "required": False,
                "type": {"type": "list", "element-id": 11, "element": "string", "element-required": False},
            },
            {"id": 3, "name": "day", "required": False, "type": "date"},
        ],
    }
    spec = {"spec-id": 0, "fields": [{"source-id": 3, "name": "day", "transform": "identity"}]}
    order = {
        "order-id": 5,
        "fields": [{"source-id": 40, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
    }
    body = {"name": "t", "schema": schema, "partition-spec": spec, "write-order": order}
    metadata = namespace.client.post(f"{namespace.path}/tables", json=body).json()["metadata"]
    fields = metadata["schemas"][0]["fields"]
    assert [(field["name"], field["id"]) for field in fields] == [("id", 1), ("tags", 2), ("day", 3)]
    assert fields[1]["type"]["element-id"] == 4
    assert metadata["last-column-id"] == 4
    assert metadata["schemas"][0]["identifier-field-ids"] == [1]
    assert metadata["partition-specs"][0]["fields"][0] | {"name": ""} == {
        "source-id": 3,
        "field-id": 1000,
        "transform": "identity",
        "name": "",
    }
    assert (metadata["default-sort-order-id"], metadata["sort-orders"][0]["fields"][0]["source-id"]) == (1, 1)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_format_versions(namespace: TableNamespace, version: int) -> None:
    metadata = namespace.create("t", properties={"format-version": str(version)}).json()["metadata"]
    assert metadata["format-version"] == version
    assert "properties" not in metadata
    assert ("next-row-id" in metadata, "last-sequence-number" in metadata) == (version == 3, version > 1)


def test_a_format_version_must_be_allowed(lakekeeper: httpx.Client, make_warehouse: Any) -> None:
    warehouse = make_warehouse(lakekeeper, "only-two")
    policy = {"allowed-format-versions": [2]}
    lakekeeper.post(f"/management/v1/warehouse/{warehouse}/format-version-policy", json=policy).raise_for_status()
    namespace = TableNamespace(lakekeeper, warehouse)
    three = {"format-version": "3"}
    assert get_refusal(namespace.create("t", properties=three)) == (400, "FormatVersionNotAllowed")
    namespace.create("t").raise_for_status()
    upgrade = {"action": "upgrade-format-version", "format-version": 3}
    assert get_refusal(namespace.commit("t", upgrade)) == (400, "FormatVersionNotAllowed")


def test_listings_come_in_pages(namespace: TableNamespace) -> None:
    for number in range(5):
        namespace.create(f"t{number}")
    names, token = [], ""
    while token is not None:
        page = namespace.client.get(f"{namespace.path}/tables", params={"pageSize": 2, "pageToken": token}).json()
        names += [one["name"] for one in page["identifiers"]]
        token = page.get("next-page-token")
    assert names == [f"t{number}" for number in range(5)]
    bad = namespace.client.get(f"{namespace.path}/tables", params={"pageToken": "bad"})
    assert bad.status_code == 400


@pytest.mark.parametrize(
    ("body", "status"),
    [({"name": "t"}, 422), ({"name": "t", "schema": {"fields": "x"}}, 422), ({"name": 1, "schema": SCHEMA}, 422)],
)
def test_a_misshapen_body_is_refused_in_plain_text(
    namespace: TableNamespace, body: dict[str, Any], status: int
) -> None:
    response = namespace.client.post(f"{namespace.path}/tables", json=body)
    assert (response.status_code, response.headers["content-type"].partition(";")[0]) == (status, "text/plain")


def test_views_change_by_versions(namespace: TableNamespace) -> None:
    def version(number: int, sql: str) -> dict[str, Any]:
        return {
            "version-id": number,
            "timestamp-ms": time.time_ns() // 1_000_000,
            "schema-id": 0 if number == 1 else -1,
            "summary": {},
            "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
            "default-namespace": [namespace.name],
        }

    url = f"{namespace.path}/views"
    view = namespace.client.post(
        url, json={"name": "v", "schema": SCHEMA, "view-version": version(1, "select 1")}
    ).json()
    changed = SCHEMA | {"fields": [*SCHEMA["fields"], {"id": 2, "name": "b", "required": False, "type": "int"}]}
    body = {
        "requirements": [{"type": "assert-view-uuid", "uuid": view["metadata"]["view-uuid"]}],
        "updates": [
            {"action": "add-schema", "schema": changed},
            {"action": "add-view-version", "view-version": version(2, "select 1, 2")},
            {"action": "set-current-view-version", "view-version-id": -1},
        ],
    }
    response = namespace.client.post(f"{url}/v", json=body)
    assert response.status_code == 200, response.text
    metadata = namespace.client.get(f"{url}/v").json()["metadata"]
    assert metadata["current-version-id"] == 2
    assert [one["version-id"] for one in metadata["version-log"]] == [1, 2]
    assert [one["schema-id"] for one in metadata["versions"]] == [0, 1]
    assert get_refusal(namespace.create("V")) == (409, "AlreadyExistsException")
