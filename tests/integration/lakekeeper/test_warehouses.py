"""Warehouses: refusals, identities, secrets, and obstacles of a deletion."""

from __future__ import annotations

import json
import uuid
from typing import Any

import httpx
import pytest

from tests.integration.lakekeeper.rules import get_refusal

MANAGEMENT = "/management/v1/warehouse"


@pytest.fixture(scope="module")
def role(aws: Any) -> tuple[str, str]:
    """A role on the prefix `by-role` of the bucket, which the catalog may assume with an external id."""
    iam, external_id = aws.client("iam"), str(uuid.uuid4())
    trust = {
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::123456789012:user/lakekeeper"},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
    }
    objects = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
    rights = [
        {"Effect": "Allow", "Action": objects, "Resource": "arn:aws:s3:::tenants/by-role/*"},
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": "arn:aws:s3:::tenants",
            "Condition": {"StringLike": {"s3:prefix": "by-role/*"}},
        },
    ]
    name = f"warehouse-{uuid.uuid4().hex[:6]}"
    document = {"Version": "2012-10-17", "Statement": [trust]}
    arn = iam.create_role(RoleName=name, Path="/lakewright/", AssumeRolePolicyDocument=json.dumps(document))["Role"][
        "Arn"
    ]
    document = {"Version": "2012-10-17", "Statement": rights}
    iam.put_role_policy(RoleName=name, PolicyName="warehouse", PolicyDocument=json.dumps(document))
    return arn, external_id


def build_role_warehouse(name: str, role_arn: str, external_id: str | None, **profile: Any) -> dict[str, Any]:
    credential = {"type": "s3", "credential-type": "aws-system-identity"}
    return {
        "warehouse-name": name,
        "storage-profile": {
            "type": "s3",
            "bucket": "tenants",
            "region": "us-east-1",
            "key-prefix": "by-role",
            "sts-enabled": True,
            "assume-role-arn": role_arn,
            **profile,
        },
        "storage-credential": credential | ({"external-id": external_id} if external_id else {}),
    }


def test_a_warehouse_by_role_vends_for_its_tables(lakekeeper: httpx.Client, role: tuple[str, str], aws: Any) -> None:
    created = lakekeeper.post(MANAGEMENT, json=build_role_warehouse("by-role", *role))
    assert created.status_code == 201, created.text
    warehouse = created.json()["warehouse-id"]
    assert created.json()["storage-credential-type"] == {"type": "s3", "credential-type": "aws-system-identity"}
    catalog = f"/catalog/v1/{warehouse}/namespaces"
    lakekeeper.post(catalog, json={"namespace": ["n"]}).raise_for_status()
    schema = {"type": "struct", "fields": [{"id": 0, "name": "a", "type": "int", "required": False}]}
    loaded = lakekeeper.post(f"{catalog}/n/tables", json={"name": "t", "schema": schema}).json()
    config = loaded["config"]
    vended = aws.client(
        "s3",
        aws_access_key_id=config["s3.access-key-id"],
        aws_secret_access_key=config["s3.secret-access-key"],
        aws_session_token=config["s3.session-token"],
    )
    key = loaded["metadata"]["location"].removeprefix("s3://tenants/")
    vended.put_object(Bucket="tenants", Key=f"{key}/data/x", Body=b"x")
    assert vended.list_objects_v2(Bucket="tenants", Prefix=f"{key}/data/")["KeyCount"] == 1
    for other in ("by-role/other/x", f"{key}-more/x", "elsewhere/x"):
        with pytest.raises(vended.exceptions.ClientError, match="AccessDenied"):
            vended.put_object(Bucket="tenants", Key=other, Body=b"x")


@pytest.mark.parametrize(
    ("external_id", "profile", "expected"),
    [
        # Without an external id the role refuses the server's write, which precedes the checks of vending.
        (None, {}, (400, "Unexpected")),
        ("wrong", {}, (400, "Unexpected")),
        ("right", {"assume-role-arn": "arn:aws:iam::123456789012:role/missing"}, (400, "Unexpected")),
        ("right", {"key-prefix": "outside"}, (400, "PermissionDenied")),
        ("right", {"bucket": "not-there"}, (400, "NotFound")),
        ("right", {"assume-role-arn": None}, (400, "Invalidsts-role-arn")),
        ("right", {"assume-role-arn": "role"}, (400, "Invalidassume-role-arn")),
        ("right", {"endpoint": "ftp://127.0.0.1"}, (400, "InvalidS3Endpoint")),
        ("right", {"region": ""}, (400, "Invalidregion")),
    ],
)
def test_a_warehouse_without_working_storage_is_refused(
    lakekeeper: httpx.Client,
    role: tuple[str, str],
    external_id: str | None,
    profile: dict[str, Any],
    expected: tuple[int, str],
) -> None:
    role_external_id = role[1] if external_id == "right" else external_id
    body = build_role_warehouse("refused", role[0], role_external_id) | {}
    body["storage-profile"] |= {"key-prefix": "by-role/refused"} | profile
    assert get_refusal(lakekeeper.post(MANAGEMENT, json=body)) == expected


def test_an_unreachable_endpoint_is_an_unknown_s3_error(lakekeeper: httpx.Client, aws: Any) -> None:
    body = build_role_warehouse("unreachable", "arn:aws:iam::123456789012:role/x", None)
    body["storage-profile"] |= {"endpoint": "http://127.0.0.1:9", "flavor": "s3-compat", "assume-role-arn": None}
    body["storage-credential"] = {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": aws.access_key_id,
        "secret-access-key": aws.secret_access_key,
    }
    response = lakekeeper.post(MANAGEMENT, json=body)
    assert response.status_code == 400
    assert "Unknown S3 error during write: unhandled error" in response.json()["error"]["message"]


def test_no_response_and_no_profile_contains_a_secret(
    lakekeeper: httpx.Client, make_warehouse: Any, aws: Any, role: tuple[str, str]
) -> None:
    warehouse = make_warehouse(lakekeeper, "secret")
    responses = [
        lakekeeper.get(MANAGEMENT),
        lakekeeper.get(f"{MANAGEMENT}/{warehouse}"),
        lakekeeper.post(f"{MANAGEMENT}/{warehouse}/rename", json={"new-name": "still-secret"}),
        lakekeeper.post(f"{MANAGEMENT}/{warehouse}/storage/validate-access"),
        lakekeeper.get("/catalog/v1/config", params={"warehouse": "still-secret"}),
    ]
    for response in responses:
        assert response.status_code == 200
        for secret in (aws.secret_access_key, aws.access_key_id, role[1]):
            assert secret not in response.text


@pytest.mark.parametrize(
    ("profile_fields", "stored_fields"),
    [
        ({"key-prefix": " /a/b/ "}, {"key-prefix": "a/b"}),
        ({"key-prefix": ""}, {"key-prefix": None}),
        ({"endpoint": "HTTP://LocalHost:80"}, {"endpoint": "http://localhost/"}),
        ({"endpoint": "https://s3.example.com:443/tenants"}, {"endpoint": "https://s3.example.com/"}),
        ({"flavor": "minio"}, {"flavor": "s3-compat"}),
        ({"assume-role-arn": " ", "flavor": "minio"}, {"assume-role-arn": None}),
        ({"s3-url-detection-mode": "path"}, {"remote-signing-url-style": "path"}),
    ],
)
def test_a_profile_is_kept_in_normal_form(profile_fields: dict[str, Any], stored_fields: dict[str, Any]) -> None:
    from lakewright_sandbox.lakekeeper.storage.s3_profile import S3ProfileBody

    base = {"type": "s3", "bucket": "tenants", "region": "r", "sts-enabled": False}
    profile = S3ProfileBody.model_validate_json(json.dumps(base | profile_fields)).normalize().to_stored()
    assert {key: profile[key] for key in stored_fields} == stored_fields


def test_storage_without_a_credential_removes_it_if_it_works(lakekeeper: httpx.Client, make_warehouse: Any) -> None:
    """An anonymous client cannot write here, so the update fails and the old credential is kept."""
    warehouse = make_warehouse(lakekeeper, "anonymous")
    profile = lakekeeper.get(f"{MANAGEMENT}/{warehouse}").json()["storage-profile"]
    response = lakekeeper.post(f"{MANAGEMENT}/{warehouse}/storage", json={"storage-profile": profile})
    assert get_refusal(response) == (400, "PermissionDenied")
    assert "storage-credential-type" in lakekeeper.get(f"{MANAGEMENT}/{warehouse}").json()


def test_an_update_that_changes_nothing_leaves_the_time(lakekeeper: httpx.Client, make_warehouse: Any) -> None:
    warehouse = make_warehouse(lakekeeper, "unchanged")
    response = lakekeeper.post(f"{MANAGEMENT}/{warehouse}/delete-profile", json={"delete-profile": {"type": "hard"}})
    assert response.json()["updated-at"] is None
    soft = {"delete-profile": {"type": "soft", "expiration_seconds": 60}}
    response = lakekeeper.post(f"{MANAGEMENT}/{warehouse}/delete-profile", json=soft)
    assert response.json()["delete-profile"] == {"type": "soft", "expiration-seconds": 60}
    assert response.json()["updated-at"] is not None


def test_rename_that_changes_only_case_leaves_the_time(lakekeeper: httpx.Client, make_warehouse: Any) -> None:
    """The trigger of Lakekeeper's database compares names by a collation that ignores case."""
    warehouse = make_warehouse(lakekeeper, "Spelled")

    def rename(name: str) -> str | None:
        renamed = lakekeeper.post(f"{MANAGEMENT}/{warehouse}/rename", json={"new-name": name}).json()
        assert renamed["name"] == name
        return renamed["updated-at"]

    assert (rename("Spelled"), rename("SPELLED")) == (None, None)
    moved = rename("spelled2")
    assert moved is not None
    assert rename("Spelled2") == moved


def test_inactive_warehouses_are_listed_on_request(lakekeeper: httpx.Client, make_warehouse: Any) -> None:
    warehouse = make_warehouse(lakekeeper, "asleep")
    lakekeeper.post(f"{MANAGEMENT}/{warehouse}/deactivate").raise_for_status()
    names = {
        states: {
            warehouse_entry["name"]
            for warehouse_entry in lakekeeper.get(MANAGEMENT, params={"warehouseStatus": states}).json()["warehouses"]
        }
        for states in (("active",), ("inactive",), ("active", "inactive"))
    }
    assert "asleep" not in names["active",]
    assert names["inactive",] == {"asleep"}
    assert "asleep" in names["active", "inactive"]
    assert lakekeeper.get(f"/catalog/v1/{warehouse}/namespaces").status_code == 404


def test_permissions_do_not_exist_under_allow_all(lakekeeper: httpx.Client) -> None:
    response = lakekeeper.get("/management/v1/permissions/server")
    assert (response.status_code, response.content) == (404, b"")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/catalog/v1/not-a-uuid/namespaces", "WarehouseIdIsNotUUID"),
        ("/catalog/v1/config", "GetConfigNoWarehouseProvided"),
    ],
)
def test_catalog_paths_need_the_warehouse(lakekeeper: httpx.Client, path: str, kind: str) -> None:
    assert get_refusal(lakekeeper.get(path)) == (400, kind)


def test_config_follows_the_address_that_the_client_used(lakekeeper: httpx.Client, make_warehouse: Any) -> None:
    make_warehouse(lakekeeper, "addressed")
    forwarded = {"x-forwarded-proto": "https", "x-forwarded-host": "catalog.example.com", "x-forwarded-prefix": "/lk"}
    response = lakekeeper.get("/catalog/v1/config", params={"warehouse": "addressed"}, headers=forwarded)
    assert response.json()["overrides"] == {"uri": "https://catalog.example.com/lk/catalog"}
