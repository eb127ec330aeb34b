"""Probes at S3 against responses that only AWS gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from lakewright.verify.attempts.check import Attempt
from lakewright.verify.probes.other_tables import probe_other_tables
from lakewright.verify.table.object_store import StoreAddress, StoreResponse
from lakewright.verify.table.probe_table import Location

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
    session = SimpleNamespace(warehouse=warehouse, table=tables.__getitem__)

    attempts = [found for found in probe_other_tables(cast(Any, session)) if isinstance(found, Attempt)]

    assert [attempt.attempt for attempt in attempts if attempt.found == "allowed"] == ["read files of another table"]


def test_bucket_in_another_region_is_asked_there() -> None:
    aws = StoreAddress("eu-west-1", None, path_style=False)
    store = StoreAddress("local-01", "https://store.example", path_style=True)

    assert aws.in_region("us-west-2").url("lake", "a") == "https://lake.s3.us-west-2.amazonaws.com/a"
    assert store.in_region("us-west-2") == store
