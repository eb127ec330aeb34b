"""Remote signing: S3 takes what the catalog signed, and the catalog signs for the table's own files only."""

from __future__ import annotations

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
        self.bucket = self.location.partition("/")[0]

    def sign(self, method: str, path: str, body: str | None = None) -> httpx.Response:
        headers = {"Host": [self._s3.removeprefix("http://")]}
        if body is not None:
            headers |= {"Content-Type": ["application/xml"], "Content-Length": [str(len(body))]}
        request: dict[str, Any] = {"region": "us-east-1", "uri": f"{self._s3}/{path}", "method": method}
        url = self._config["s3.signer.uri"] + self._config["s3.signer.endpoint"]
        return self._client.post(url, json=request | {"headers": headers, "body": body})

    def send(self, method: str, path: str, body: str | None = None) -> httpx.Response:
        answer = self.sign(method, path, body)
        assert answer.status_code == 200, answer.text
        signed = answer.json()
        headers = {name: values[0] for name, values in signed["headers"].items()}
        return httpx.request(method, signed["uri"], headers=headers, content=body)


@pytest.fixture(scope="module")
def signer(lakekeeper: httpx.Client, make_warehouse: Any, aws: Any) -> Signer:
    warehouse = make_warehouse(lakekeeper, "signing")
    lakekeeper.post(f"/catalog/v1/{warehouse}/namespaces", json={"namespace": ["n"]}).raise_for_status()
    for name in ("t", "other"):
        body = {"name": name, "schema": SCHEMA}
        lakekeeper.post(f"/catalog/v1/{warehouse}/namespaces/n/tables", json=body).raise_for_status()
    return Signer(lakekeeper, warehouse, aws.endpoint)


def test_put_get_list_and_delete(signer: Signer) -> None:
    key = f"{signer.location}/data/a%20b.parquet"
    assert signer.send("PUT", key, "content").status_code == 200
    assert signer.send("GET", key).text == "content"
    folder = signer.location.partition("/")[2]
    listed = signer.send("GET", f"{signer.bucket}?list-type=2&prefix={folder}/data/")
    assert "a b.parquet" in listed.text
    assert signer.send("DELETE", key).status_code == 204


def test_delete_of_many_objects(signer: Signer) -> None:
    folder = signer.location.partition("/")[2]
    keys = [f"{folder}/data/{number}" for number in range(3)]
    for key in keys:
        signer.send("PUT", f"{signer.bucket}/{key}", "x")
    body = DELETE.format("".join(f"<Object><Key>{key}</Key></Object>" for key in keys))
    assert signer.send("POST", f"{signer.bucket}?delete", body).status_code == 200
    listed = signer.send("GET", f"{signer.bucket}?list-type=2&prefix={folder}/data/")
    assert keys[0] not in listed.text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "{bucket}/elsewhere"),
        ("PUT", "{location}-not/data"),
        ("PUT", "{location}/../x"),
        ("GET", "other-bucket/{location}/x"),
        ("GET", "{bucket}?list-type=2&prefix="),
        ("GET", "{bucket}?policy"),
        ("DELETE", "{bucket}"),
    ],
)
def test_what_is_outside_of_the_table_is_not_signed(signer: Signer, method: str, path: str) -> None:
    answer = signer.sign(method, path.format(bucket=signer.bucket, location=signer.location))
    assert answer.status_code == 403
    assert answer.json()["error"]["type"] == "SignRequestOutsideLocation"


def test_a_delete_of_many_must_name_objects_of_the_table(signer: Signer) -> None:
    body = DELETE.format("<Object><Key>elsewhere</Key></Object>")
    assert signer.sign("POST", f"{signer.bucket}?delete", body).status_code == 403
    assert signer.sign("POST", f"{signer.bucket}?delete", None).status_code == 400


def test_only_answers_that_depend_on_no_body_may_be_kept(signer: Signer) -> None:
    """Iceberg's Java client keeps what is `private`, by method and URI."""
    key = f"{signer.location}/data/x"
    assert signer.sign("GET", key).headers["cache-control"] == "private"
    assert signer.sign("PUT", key).headers["cache-control"] == "no-store"
