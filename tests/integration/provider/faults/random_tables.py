"""Tables in random stacks: their growing declarations, the changes of jobs, and their state on the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import httpx
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.resource import Props

BUCKET = "lives"
ID, NOTE = {"name": "id", "type": "int"}, {"name": "note", "type": "string"}
LONG, TEXT = {"name": "id", "type": "long"}, {"name": "text", "type": "string", "renamed_from": "note"}
AGES: tuple[Props, ...] = (
    {"columns": [ID, NOTE]},
    {"columns": [LONG, NOTE], "sort_by": ["id"]},
    {"columns": [LONG, TEXT], "partition_by": ["bucket(4, id)"]},
    {"columns": [TEXT, LONG, {"name": "day", "type": "date"}], "partition_by": ["days(day)"]},
)
"""A table only gets later versions: an earlier version would narrow or drop a column."""


def real_storage(sandbox: Sandbox, prefix: str) -> Props:
    """Return a warehouse's storage in which tables can be written."""
    bucket_props = {
        "bucket": BUCKET,
        "key_prefix": prefix,
        "region": sandbox.aws.region,
        "endpoint": sandbox.aws.endpoint,
    }
    return {**bucket_props, "flavor": "s3-compat", "path_style_access": True, "sts_enabled": False}


def make_bucket(sandbox: Sandbox) -> dict[str, str]:
    """Create the bucket of all runs; return the environment variables that hold its key."""
    key, secret = sandbox.admin.access_key_id, sandbox.admin.secret_access_key.get_secret_value()
    session = boto3.Session(key, secret, region_name=sandbox.aws.region)
    session.client("s3", endpoint_url=sandbox.aws.endpoint).create_bucket(Bucket=BUCKET)
    return {"LIVES_KEY_ID": key, "LIVES_KEY": secret}


REAL_KEY: Props = {
    "type": "access-key",
    "access_key_id": "env:LIVES_KEY_ID",
    "secret_access_key": "env:LIVES_KEY",
}

NEW_NAME = "theirs"
"""The name that jobs give to a table."""


class Jobs:
    """Jobs that change a table outside the stack. Changes that the server refuses are skipped.

    Together they leave at most one table. A stack does not know, and must not delete, a second table: the table that it
    made if another table has its name, or the new name of a table that it did not make.
    """

    def __init__(self, http: httpx.Client, warehouse_id: str, outs: Props) -> None:
        self._http, self._outs = http, outs
        self._management = f"/management/v1/warehouse/{warehouse_id}/table/{outs['table_id']}"
        self._catalog = f"/catalog/v1/{warehouse_id}"
        self._tables = f"{self._catalog}/namespaces/{outs['namespace'].replace('.', '%1F')}/tables"
        self._table = f"{self._tables}/{outs['name']}"
        self._renamed_table = f"{self._tables}/{NEW_NAME}"

    def drifts(self) -> dict[str, Callable[[], None]]:
        """Return the changes that jobs could make, by name."""
        properties = {"action": "set-properties", "updates": {"owner": "of another"}}
        return {
            "drop": self._drop,
            "recreate": self._recreate,
            "rename": self._rename,
            "protect": lambda: self._try_commit("POST", f"{self._management}/protection", {"protected": True}),
            "properties": lambda: self._commit(properties),
            "reorder": self._reorder,
        }

    def _drop(self) -> None:
        self._try_commit("DELETE", f"{self._table}?purgeRequested=false&force=false")

    def _recreate(self) -> None:
        """Drop the table, also if it was renamed, and create another table with its former name."""
        for table in (self._table, self._renamed_table):
            self._try_commit("DELETE", f"{table}?purgeRequested=true&force=true")
        fields = [{"id": 7, "name": "id", "type": "int", "required": False}]
        schema = {"type": "struct", "schema-id": 0, "fields": fields}
        self._try_commit("POST", self._tables, {"name": self._outs["name"], "schema": schema})

    def _rename(self) -> None:
        """Rename the table that the stack made. It cannot follow a table that a job created."""
        response = self._http.get(self._table)
        if not response.is_success or response.json()["metadata"]["table-uuid"] != self._outs["table_id"]:
            return
        levels = self._outs["namespace"].split(".")
        source = {"namespace": levels, "name": self._outs["name"]}
        body = {"source": source, "destination": {"namespace": levels, "name": NEW_NAME}}
        self._try_commit("POST", f"{self._catalog}/tables/rename", body)

    def _reorder(self) -> None:
        response = self._http.get(self._table)
        if response.is_success:
            schema = current(response.json()["metadata"], "schemas", "schema-id", "current-schema-id")
            turned = schema | {"schema-id": 99, "fields": schema["fields"][::-1]}
            added = {"action": "add-schema", "schema": turned}
            self._commit(added, {"action": "set-current-schema", "schema-id": -1})

    def _commit(self, *updates: Props) -> None:
        self._try_commit("POST", self._table, {"requirements": [], "updates": updates})

    def _try_commit(self, method: str, path: str, body: Props | None = None) -> None:
        response = self._http.request(method, path, json=body)
        assert response.status_code != 500, response.text


def current(metadata: Props, many: str, key: str, current_key: str) -> Props:
    """Return the current schema, partition spec or sort order."""
    return next(item for item in metadata[many] if item[key] == metadata[current_key])


def expect_table(props: Props) -> Props:
    """Return the JSON of a declared table that the server must show."""
    return {
        "name": props["name"],
        "columns": [(column["name"], column["type"]) for column in props["columns"]],
        "partitions": [item.partition("(")[0].rstrip("s") for item in props.get("partition_by", ())],
        "sorted": len(props.get("sort_by", ())),
        "properties": props["properties"],
        "protected": False,
    }


def read_tables(http: httpx.Client, warehouse_id: str, path: list[str]) -> list[Props]:
    """Return the JSON of a namespace's tables on the server."""
    root = f"/catalog/v1/{warehouse_id}/namespaces/{'%1F'.join(path)}/tables"
    response = http.get(root, params={"returnProtectionStatus": "true"}).raise_for_status().json()
    return [
        _to_json(
            http.get(f"{root}/{identifier['name']}").raise_for_status().json()["metadata"],
            identifier["name"],
            protected,
        )
        for identifier, protected in zip(response["identifiers"], response["protection-status"], strict=True)
    ]


def _to_json(metadata: Props, name: str, protected: Any) -> Props:
    schema = current(metadata, "schemas", "schema-id", "current-schema-id")
    spec = current(metadata, "partition-specs", "spec-id", "default-spec-id")
    order = current(metadata, "sort-orders", "order-id", "default-sort-order-id")
    return {
        "name": name,
        "columns": [(field["name"], field["type"]) for field in schema["fields"]],
        "partitions": [field["transform"].partition("[")[0] for field in spec["fields"]],
        "sorted": len(order["fields"]),
        "properties": {key: value for key, value in metadata["properties"].items() if key in ("owner", "team")},
        "protected": protected,
    }
