"""Remote signing: S3 accepts what the catalog signed, and the catalog signs for the table's own files only."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import pytest

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
DELETE = '<?xml version="1.0" encoding="UTF-8"?><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{}</Delete>'


class Signer:
    """A table whose files a client reaches by signed requests."""

    def __init__(self, lakekeeper: httpx.Client, warehouse: str, endpoint: str) -> None:
        tables = f"/catalog/v1/{warehouse}/namespaces/n/tables"
        headers = {"X-Iceberg-Access-Delegation": "remote-signing"}
        loaded = lakekeeper.get(f"{tables}/t", headers=headers).json()
        self._client, self._config, self._s3 = lakekeeper, loaded["config"], endpoint
        self.location = loaded["metadata"]["location"].removeprefix("s3://")
        other = lakekeeper.get(f"{tables}/other").json()
        self.other_location = other["metadata"]["location"].removeprefix("s3://")
        self.bucket = self.location.partition("/")[0]

    def sign(self, method: str, path: str, body: str | None = None, **more: str) -> httpx.Response:
        headers = {"Host": [self._s3.removeprefix("http://")]}
        headers |= {name.replace("_", "-"): [value] for name, value in more.items()}
        if body is not None:
            headers |= {"Content-Type": ["application/xml"], "Content-Length": [str(len(body))]}
        request: dict[str, Any] = {"region": "us-east-1", "uri": f"{self._s3}/{path}", "method": method}
        url = self._config["s3.signer.uri"] + self._config["s3.signer.endpoint"]
        return self._client.post(url, json=request | {"headers": headers, "body": body})

    def send(self, method: str, path: str, body: str | None = None, **more: str) -> httpx.Response:
        response = self.sign(method, path, body, **more)
        assert response.status_code == 200, response.text
        signed = response.json()
        headers = {name: values[0] for name, values in signed["headers"].items()}
        return httpx.request(method, signed["uri"], headers=headers, content=body)


def create_signer(lakekeeper: httpx.Client, make_warehouse: Any, aws: Any) -> Signer:
    warehouse = make_warehouse(lakekeeper, "signing")
    lakekeeper.post(f"/catalog/v1/{warehouse}/namespaces", json={"namespace": ["n"]}).raise_for_status()
    for name in ("t", "other"):
        body = {"name": name, "schema": SCHEMA}
        lakekeeper.post(f"/catalog/v1/{warehouse}/namespaces/n/tables", json=body).raise_for_status()
    return Signer(lakekeeper, warehouse, aws.endpoint)


@pytest.fixture(scope="module")
def signer(lakekeeper: httpx.Client, make_warehouse: Any, aws: Any) -> Signer:
    return create_signer(lakekeeper, make_warehouse, aws)


def test_put_get_list_and_delete(signer: Signer) -> None:
    key = f"{signer.location}/data/a%20b.parquet"
    assert signer.send("PUT", key, "content").status_code == 200
    assert signer.send("GET", key).text == "content"
    folder = signer.location.partition("/")[2]
    response = signer.send("GET", f"{signer.bucket}?list-type=2&prefix={folder}/data/")
    assert "a b.parquet" in response.text
    assert signer.send("DELETE", key).status_code == 204


def test_delete_of_many_objects(signer: Signer) -> None:
    folder = signer.location.partition("/")[2]
    keys = [f"{folder}/data/{number}" for number in range(3)]
    for key in keys:
        signer.send("PUT", f"{signer.bucket}/{key}", "x")
    body = DELETE.format("".join(f"<Object><Key>{key}</Key></Object>" for key in keys))
    assert signer.send("POST", f"{signer.bucket}?delete", body).status_code == 200
    response = signer.send("GET", f"{signer.bucket}?list-type=2&prefix={folder}/data/")
    assert keys[0] not in response.text


NO_TABLE, NO_KEY = "NoSuchTableLocationException", "UriNotS3"


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "{bucket}/elsewhere", 400, NO_TABLE),
        ("PUT", "{location}-not/data", 400, NO_TABLE),
        ("PUT", "{location}/../x", 400, NO_TABLE),
        ("GET", "other-bucket/{location}/x", 400, NO_TABLE),
        ("GET", "{bucket}?list-type=2&prefix=", 400, "ListWithoutPrefix"),
        ("GET", "{bucket}?policy", 400, NO_KEY),
        ("GET", "{bucket}?policy&prefix={folder}/", 400, NO_KEY),
        ("GET", "{bucket}?list-type=2&prefix={folder}/&prefix=", 400, "RepeatedListParameter"),
        ("GET", "{bucket}?list-type=2&prefix={folder}/&policy", 400, "UnsupportedListParameter"),
        ("GET", "{location}/x?list-type=2&prefix={folder}/", 400, "UriNotBucket"),
        ("DELETE", "{bucket}", 400, NO_KEY),
        ("PUT", "{location}/data?acl", 403, "SignRequestOutsideLocation"),
    ],
)
def test_refuses_requests_outside_the_table(signer: Signer, method: str, path: str, status: int, kind: str) -> None:
    folder = signer.location.partition("/")[2]
    response = signer.sign(method, path.format(bucket=signer.bucket, location=signer.location, folder=folder))
    assert (response.status_code, response.json()["error"]["type"]) == (status, kind)


def test_another_tables_file_is_signed_by_its_location(signer: Signer) -> None:
    """PyIceberg up to 0.9.1 asks for every table's files with the first table's id."""
    assert signer.sign("GET", f"{signer.other_location}/data/x").status_code == 200


@pytest.mark.parametrize(("version", "kind"), [("0.11", "TableNotFoundByLocation"), ("0.13", NO_TABLE)])
def test_releases_refuse_objects_outside_of_tables(
    version: str, kind: str, start_lakekeeper: Any, make_warehouse: Any, aws: Any
) -> None:
    signer = create_signer(start_lakekeeper("--version", version), make_warehouse, aws)
    refused = signer.sign("GET", f"{signer.bucket}/elsewhere")
    assert (refused.status_code, refused.json()["error"]["type"]) == (400, kind)
    listing = signer.sign("GET", f"{signer.bucket}?list-type=2&prefix={signer.location.partition('/')[2]}/")
    assert (listing.status_code, listing.json()["error"]["type"]) == (400, NO_KEY)


def test_a_delete_of_many_must_name_objects_of_the_table(signer: Signer) -> None:
    path, inside = f"{signer.bucket}?delete", signer.location.partition("/")[2]
    for keys, kind in ((("elsewhere",), NO_TABLE), ((f"{inside}/data/x", "elsewhere"), "RequestUriMismatch")):
        body = DELETE.format("".join(f"<Object><Key>{key}</Key></Object>" for key in keys))
        refused = signer.sign("POST", path, body)
        assert (refused.status_code, refused.json()["error"]["type"]) == (400, kind)
    assert signer.sign("POST", path, None).json()["error"]["type"] == "DeleteWithoutBody"


def test_a_copy_within_the_table_is_signed(signer: Signer) -> None:
    signer.send("PUT", f"{signer.location}/data/one", "content")
    source = f"/{signer.location}/data%2Fone"
    assert signer.send("PUT", f"{signer.location}/data/two", x_amz_copy_source=source).status_code == 200
    assert signer.send("GET", f"{signer.location}/data/two").text == "content"


@pytest.mark.parametrize(
    "source",
    ["{bucket}/elsewhere", "/{location}-not/data", "{location}%2F..%2Fx", "other-bucket/{location}/x", "{location}?/x"],
)
def test_a_copy_from_outside_of_the_table_is_not_signed(signer: Signer, source: str) -> None:
    copy_source = source.format(bucket=signer.bucket, location=signer.location)
    for header in ("x_amz_copy_source", "X_Amz_Copy_Source"):
        response = signer.sign("PUT", f"{signer.location}/data/copy", **{header: copy_source})
        assert response.status_code == 403
        assert response.json()["error"]["type"] == "SignRequestOutsideLocation"


@pytest.mark.parametrize("claimed", ["UNSIGNED-PAYLOAD", hashlib.sha256(b"another body").hexdigest()])
def test_only_the_checked_body_of_a_delete_is_signed(signer: Signer, claimed: str) -> None:
    """With a custom hash, a client could send the signature with a body that names other objects."""
    body = DELETE.format(f"<Object><Key>{signer.location.partition('/')[2]}/data/x</Key></Object>")
    response = signer.sign("POST", f"{signer.bucket}?delete", body, x_amz_content_sha256=claimed)
    signed = {name.lower(): values for name, values in response.json()["headers"].items()}
    assert signed["x-amz-content-sha256"] == [hashlib.sha256(body.encode()).hexdigest()]


def test_only_responses_independent_of_a_body_are_cacheable(signer: Signer) -> None:
    """Iceberg's Java client caches `private` responses by method and URI."""
    key = f"{signer.location}/data/x"
    assert signer.sign("GET", key).headers["cache-control"] == "private"
    assert signer.sign("PUT", key).headers["cache-control"] == "no-store"
