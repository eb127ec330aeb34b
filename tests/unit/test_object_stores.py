"""The sandbox's servers for Azure and Google: what a vended credential may do, and which storage is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.storage.google_storage import build_boundary
from lakewright_sandbox.object_stores.azure_signatures import AzureAccount, find_sas_problem, make_sas, read_sas
from lakewright_sandbox.object_stores.google_batch import BatchCall, parse_batch
from lakewright_sandbox.object_stores.google_front import GoogleFront, allows, read_boundary
from starlette.testclient import TestClient

ACCOUNT = AzureAccount("acmelake", "a2V5IG9mIHRoZSBhY2NvdW50")
NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
BOTH = {"reader", "writer"}
LOCATION = "gs://acme-lake/acme/it's/table"


def find_problem(path: str, changes: dict[str, str] | None = None, now: datetime = NOW) -> str:
    """Return why a SAS of `acme/main/table` gives no access to a path."""
    sas = make_sas(ACCOUNT, "lake", "acme/main/table", permissions="rl", expires=NOW + timedelta(hours=1))
    return find_sas_problem(ACCOUNT, "lake", path, read_sas(sas) | (changes or {}), now)


def test_sas_is_for_one_directory() -> None:
    assert find_problem("acme/main/table") == ""
    assert find_problem("acme/main/table/data/1.parquet") == ""
    assert "not valid for this path" in find_problem("acme/main/table2/data/1.parquet")
    assert "not valid for this path" in find_problem("acme/main")
    assert "not valid for this path" in find_problem("")


@pytest.mark.parametrize(
    "change", [{"sp": "rawdl"}, {"se": "2027-11-24T12:00:00Z"}, {"sdd": "2"}, {"sdd": "0"}, {"sr": "c"}, {"sig": ""}]
)
def test_changed_sas_is_refused(change: dict[str, str]) -> None:
    assert find_problem("acme/main/table/data/1.parquet", change).startswith("AuthenticationFailed")


def test_sas_expires() -> None:
    assert "has expired" in find_problem("acme/main/table/x", now=NOW + timedelta(hours=1))


@pytest.mark.parametrize(
    ("method", "path", "params", "allowed"),
    [
        ("GET", "/storage/v1/b/acme-lake/o/acme%2Fit%27s%2Ftable%2Fdata%2F1", {}, BOTH),
        ("DELETE", "/storage/v1/b/acme-lake/o/acme%2Fit%27s%2Ftable%2Fdata%2F1", {}, {"writer"}),
        ("POST", "/upload/storage/v1/b/acme-lake/o", {"name": "acme/it's/table/data/1"}, {"writer"}),
        ("POST", "/upload/storage/v1/b/acme-lake/o", {"name": "acme/it's/table2/data/1"}, set[str]()),
        ("GET", "/storage/v1/b/acme-lake/o", {"prefix": "acme/it's/table/"}, BOTH),
        ("GET", "/storage/v1/b/acme-lake/o", {"prefix": "acme/"}, set[str]()),
        ("GET", "/storage/v1/b/acme-lake/o", {}, set[str]()),
        ("GET", "/storage/v1/b/other/o/acme%2Fit%27s%2Ftable%2Fdata%2F1", {}, set[str]()),
        ("DELETE", "/storage/v1/b/acme-lake", {}, set[str]()),
    ],
)
def test_token_is_for_one_location(method: str, path: str, params: dict[str, str], allowed: set[str]) -> None:
    """The boundary that the server sends is read as Google reads it, with a quote in the location."""
    for role in BOTH:
        boundary = read_boundary(json.dumps(build_boundary("acme-lake", LOCATION, writable=role == "writer")))
        assert boundary is not None
        assert allows(boundary, method, path, params) is (role in allowed)


def test_boundary_without_a_condition_is_refused() -> None:
    document = build_boundary("acme-lake", LOCATION, writable=True)
    del document["accessBoundary"]["accessBoundaryRules"][0]["availabilityCondition"]

    assert read_boundary(json.dumps(document)) is None


BATCH = b"""--__END_OF_PART__\r
Content-Length: 120\r
Content-Type: application/http\r
content-id: 1\r
content-transfer-encoding: binary\r
\r
DELETE http://127.0.0.1:1/storage/v1/b/acme-lake/o/acme%2Ftable%2F1?quotaUser=u HTTP/1.1\r
Authorization: Bearer inner\r
\r
\r
--__END_OF_PART__\r
Content-Type: application/http\r
content-id: 2\r
\r
DELETE /storage/v1/b/acme-lake/o/acme%2Ftable%2F2 HTTP/1.1\r
\r
\r
--__END_OF_PART__--\r
"""
"""Deletions, as Google's Java client sends them."""
BATCH_TYPE = "multipart/mixed; boundary=__END_OF_PART__"


def test_calls_of_a_batch_are_read_with_their_tokens() -> None:
    assert parse_batch(BATCH_TYPE, BATCH, "Bearer outer") == [
        BatchCall("DELETE", "/storage/v1/b/acme-lake/o/acme%2Ftable%2F1", "quotaUser=u", "Bearer inner"),
        BatchCall("DELETE", "/storage/v1/b/acme-lake/o/acme%2Ftable%2F2", "", "Bearer outer"),
    ]


def test_each_call_of_a_batch_needs_a_token() -> None:
    front = TestClient(GoogleFront("http://127.0.0.1:1", {}).create_app())

    response = front.post("/batch/storage/v1", content=BATCH, headers={"content-type": BATCH_TYPE})

    assert response.headers["content-type"] == "multipart/mixed; boundary=batch_of_responses"
    assert response.text.count("HTTP/1.1 401 Unauthorized") == 2
    assert front.post("/batch/storage/v1", content=b"x", headers={"content-type": "text/plain"}).status_code == 400


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A Lakekeeper that validates storage, with stores that do not respond."""
    database: Path = tmp_path_factory.mktemp("lakekeeper") / "db"
    settings = Settings(database=f"sqlite:///{database}", adls_endpoint="http://127.0.0.1:9")
    with TestClient(create_app(settings)) as client:
        client.post("/management/v1/bootstrap", json={"accept-terms-of-use": True})
        yield client


@pytest.mark.parametrize(
    ("profile", "credential", "status", "kind"),
    [
        (
            {"type": "adls", "account-name": "acmelake", "filesystem": "lake"},
            {"type": "az", "credential-type": "azure-system-identity"},
            400,
            "Misconfiguration",
        ),
        (
            {"type": "gcs", "bucket": "acme-lake"},
            {"type": "gcs", "credential-type": "gcp-system-identity"},
            400,
            "Misconfiguration",
        ),
        (
            {"type": "adls", "account-name": "acmelake", "filesystem": "lake"},
            {"type": "az", "credential-type": "shared-access-key", "key": "abc"},
            400,
            "PermissionDenied",
        ),
        (
            {"type": "adls", "account-name": "acmelake", "filesystem": "lake"},
            {
                "type": "az",
                "credential-type": "client-credentials",
                "client-id": "a",
                "tenant-id": "b",
                "client-secret": "c",
            },
            412,
            "InitializeClientError",
        ),
    ],
)
def test_unusable_credential_is_refused(
    server: TestClient, profile: dict[str, Any], credential: dict[str, Any], status: int, kind: str
) -> None:
    body = {"warehouse-name": "main", "storage-profile": profile, "storage-credential": credential}

    response = server.post("/management/v1/warehouse", json=body)

    assert (response.status_code, response.json()["error"]["type"]) == (status, kind)
