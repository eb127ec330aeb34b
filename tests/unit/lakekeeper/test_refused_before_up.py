"""Rules of released servers that are checked with a declaration, before any call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lakewright.lakekeeper.api.connection.errors import BusyError, LakekeeperError, RefusedError
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.storage.credentials import GOOGLE_KEY_FIELDS
from lakewright.lakekeeper.warehouse.changes import is_not_yet, patiently
from lakewright.lakekeeper.warehouse.model import WarehouseArgs
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.spec import SpecError
from lakewright.spec.parsing import parse_spec

from tests.unit.lakekeeper.scripted_server import Script, refusal

SERVER = {"endpoint": "https://127.0.0.1:9"}
ROLE = {"server": SERVER, "project_id": "tenant", "name": "readers", "source_id": "42"}
STORAGE: dict[str, dict[str, Any]] = {
    "s3": {"bucket": "lake", "region": "us-east-1", "sts_enabled": False},
    "adls": {"type": "adls", "account_name": "lakeaccount", "filesystem": "lake"},
    "gcs": {"type": "gcs", "bucket": "lake"},
}
CREDENTIAL: dict[str, dict[str, Any] | None] = {
    "s3": None,
    "adls": {"type": "azure-system-identity"},
    "gcs": {"type": "gcp-system-identity"},
}
KEY = dict.fromkeys(GOOGLE_KEY_FIELDS, "hidden") | {
    "token_uri": "https://oauth2.googleapis.com/token",
    "universe_domain": "googleapis.com",
}


def warehouse(kind: str, credential: dict[str, Any] | None = None, **storage: Any) -> dict[str, Any]:
    props: dict[str, Any] = {"server": SERVER, "project_id": "tenant", "name": "main"}
    credential_or_default = credential or CREDENTIAL[kind]
    return (
        props
        | {"storage": STORAGE[kind] | storage}
        | ({"credential": credential_or_default} if credential_or_default else {})
    )


def failures(props: dict[str, Any]) -> dict[str, str]:
    return {failure.property: failure.reason for failure in WarehouseProvider().check({}, props).failures}


@pytest.mark.parametrize("provider_id", ["Okta", "okta_1", "okta~x", "ökta", ""])
def test_role_provider_id_with_other_characters(provider_id: str) -> None:
    problems = RoleProvider().check({}, ROLE | {"provider_id": provider_id}).failures
    assert [item.property for item in problems] == ["provider_id"]
    assert RoleProvider().check({}, ROLE | {"provider_id": "okta-1"}).failures == []


@pytest.mark.parametrize(("kind", "most"), [("adls", 512), ("gcs", 896), ("s3", 896)])
def test_key_prefix_of_more_bytes_than_the_storage_allows(kind: str, most: int) -> None:
    assert failures(warehouse(kind, key_prefix="x" * most)) == {}
    problems = failures(warehouse(kind, key_prefix="ü" * (most // 2) + "x"))
    assert f"at most {most} bytes" in problems["storage.key_prefix"]


@pytest.mark.parametrize("bucket", ["lake_1", "goog-lake", "10.0.0.1", "a..b", "x" * 64, "Lake", "ab", "-lake"])
def test_gcs_bucket_name_that_lakekeeper_refuses(bucket: str) -> None:
    assert list(failures(warehouse("gcs", bucket=bucket))) == ["storage.bucket"]


@pytest.mark.parametrize("bucket", ["my.lake.1", "x" * 63, "1lake", "10.0.0"])
def test_gcs_bucket_name_that_lakekeeper_accepts(bucket: str) -> None:
    assert failures(warehouse("gcs", bucket=bucket)) == {}


def test_gcs_key_prefix_below_the_acme_challenge() -> None:
    assert list(failures(warehouse("gcs", key_prefix=".well-known/acme-challenge/x"))) == ["storage.key_prefix"]


def test_dollar_in_a_key_prefix_of_s3() -> None:
    assert "begins a variable in IAM policies" in failures(warehouse("s3", key_prefix="a/$b"))["storage.key_prefix"]
    assert failures(warehouse("gcs", key_prefix="a/$b")) == {}


def test_dollar_in_a_key_prefix_of_a_spec() -> None:
    spec = {
        "version": 1,
        "name": "acme",
        "owner": "ada",
        "storage": {"main": {"backend": "aws", "region": "us-east-1"}},
        "warehouses": [{"name": "main", "key_prefix": "${aws:username}"}],
    }
    with pytest.raises(SpecError, match=r"warehouses.0.key_prefix: .*must not contain `\$`"):
        parse_spec(spec, "spec")


def test_recorded_key_prefix_with_a_dollar_is_still_read() -> None:
    """A state that an earlier release wrote loads."""
    assert WarehouseArgs.from_state(warehouse("s3", key_prefix="a/$b")).storage.key_prefix == "a/$b"  # type: ignore[union-attr]


@pytest.mark.parametrize("missing", GOOGLE_KEY_FIELDS)
def test_google_key_that_lacks_a_field(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_KEY", json.dumps({key: value for key, value in KEY.items() if key != missing}))
    problems = failures(warehouse("gcs", {"type": "service-account-key", "key": "env:GOOGLE_KEY"}))
    assert f"found none in {missing}. " in problems["credential.key"]
    assert "hidden" not in str(problems)


def test_google_key_that_is_complete_or_unreadable_here(monkeypatch: pytest.MonkeyPatch) -> None:
    props = warehouse("gcs", {"type": "service-account-key", "key": "env:GOOGLE_KEY"})
    monkeypatch.delenv("GOOGLE_KEY", raising=False)
    assert failures(props) == {}
    monkeypatch.setenv("GOOGLE_KEY", json.dumps(KEY))
    assert failures(props) == {}


@pytest.mark.parametrize(
    ("address", "server", "is_refused"),
    [
        ("https://oauth2.googleapis.com/token", "https://lakekeeper.example", False),
        ("https://oauth2.s3nsapis.fr/token", "https://lakekeeper.example", False),
        ("http://127.0.0.1:8080/token", "http://127.0.0.1:8181", False),
        ("http://127.0.0.1:8080/token", "https://lakekeeper.example", True),
        ("http://vault.vault.svc:8200/v1/token", "http://127.0.0.1:8181", True),
        ("https://oauth2.evil.example/token", "https://lakekeeper.example", True),
        ("http://[broken/token", "http://127.0.0.1:8181", True),
    ],
)
def test_google_key_names_an_address_of_google(
    address: str, server: str, monkeypatch: pytest.MonkeyPatch, *, is_refused: bool
) -> None:
    """The server sends requests there. Trials may have an emulator on the same machine."""
    monkeypatch.setenv("GOOGLE_KEY", json.dumps(KEY | {"token_uri": address, "universe_domain": "evil.example"}))
    credential = {"type": "service-account-key", "key": "env:GOOGLE_KEY"}

    problems = failures(warehouse("gcs", credential) | {"server": {"endpoint": server}})

    assert ("another `token_uri`" in problems.get("credential.key", "")) is is_refused
    assert "evil.example" not in str(problems)


@pytest.mark.parametrize("kind", ["ObjectHasRelations", "ObjectUsedInRelation"])
def test_relations_left_in_openfga_are_reported(kind: str) -> None:
    with pytest.raises(RefusedError, match=f"409 {kind}: no. OpenFGA still holds relations of an object with that id"):
        Script(refusal(409, kind)).client().call("POST", "/x")


def test_request_without_a_project_says_where_to_name_one() -> None:
    with pytest.raises(RefusedError, match=r"400 MissingProjectId: no\. .* set `project_id` of the server's settings"):
        Script(refusal(400, "MissingProjectId")).client().call("GET", "/x")


def test_failed_transaction_is_retried_even_for_a_create() -> None:
    script = Script(refusal(409, "TransactionFailed"), refusal(201))
    script.client().call("POST", "/x", body={}, idempotent=False)
    assert len(script.requests) == 2
    with pytest.raises(BusyError):
        Script(refusal(409, "TransactionFailed")).client().call("POST", "/x", idempotent=False)


UNANSWERED = "IO error at `s3://b/p/metadata/test`: Unknown S3 error during write: unhandled error"
REFUSED = "IO error at `s3://b/p/metadata/test`: S3 write failed: The request signature we calculated does not match"


@pytest.mark.parametrize(
    ("status", "kind", "message", "passing"),
    [
        (412, "ShortTermCredentialError", "Failed to create short-term credential", True),
        (400, "PermissionDenied", "S3 write failed: Access Denied.", True),
        (400, "Unexpected", UNANSWERED, True),
        (400, "Unexpected", f"Storage validation failed [lakekeeper-read-write]: {UNANSWERED}", True),
        (400, "Unexpected", REFUSED, False),
        (400, "Unexpected", "IO error at `s3://b/p/`: Unknown S3 error during list: unhandled error", False),
        (500, "Unexpected", UNANSWERED, False),
        (400, "NotFound", "S3 write failed: The specified bucket does not exist", False),
        (412, "InitializeClientError", "Could not initialize storage client", False),
    ],
)
def test_refusals_that_a_new_role_may_cause(status: int, kind: str, message: str, *, passing: bool) -> None:
    with pytest.raises(LakekeeperError) as refused:
        Script(refusal(status, kind, message)).client().call("POST", "/x", idempotent=False)
    assert is_not_yet(refused.value) is passing


def test_lost_put_without_a_role_is_not_retried() -> None:
    script = Script(refusal(400, "Unexpected", UNANSWERED))
    with pytest.raises(RefusedError, match="unable to assume `assume_role_arn`"):
        patiently(fresh_role=False, call=lambda: script.client().call("POST", "/x", idempotent=False))
    assert len(script.requests) == 1
