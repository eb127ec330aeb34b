"""Credentials of warehouses: by reference, rotated alone, sent again with the profile, and their drift."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.credentials.resending import RESEND
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

from tests.integration.provider.conftest import AwsClient
from tests.integration.provider.resource import Props, Resource


@pytest.fixture
def other_key(aws: AwsClient, sandbox: Any, unique: str) -> tuple[str, str]:
    """Another access key with rights on the bucket."""
    iam = aws("iam")
    iam.create_user(UserName=f"storage-{unique}")
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    iam.put_user_policy(UserName=f"storage-{unique}", PolicyName="all", PolicyDocument=json.dumps(policy))
    key = iam.create_access_key(UserName=f"storage-{unique}")["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]


@pytest.fixture
def credential_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The changes that were sent by the two calls that contain a credential."""
    calls: list[str] = []
    real = warehouses.change_storage

    def record(client: Client, warehouse_id: str, subject: str, body: Any) -> None:
        calls.append(subject)
        real(client, warehouse_id, subject, body)

    monkeypatch.setattr(warehouses, "change_storage", record)
    return calls


def test_new_secret_is_sent_by_the_credential_call(
    warehouse: Resource,
    warehouse_props: Props,
    other_key: tuple[str, str],
    credential_calls: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = warehouse.outs["credential_fingerprint"]
    monkeypatch.setenv("STORAGE_KEY_ID", other_key[0])
    monkeypatch.setenv("STORAGE_SECRET", other_key[1])
    assert warehouse.preview(**warehouse_props) == "update"
    assert warehouse.up(**warehouse_props) == "update"
    assert credential_calls == ["storage-credential"]
    assert warehouse.outs["credential_fingerprint"] != before
    assert warehouse.up(**warehouse_props) == "same"
    assert warehouse.refresh() == "same"


def test_unchanged_credential_is_sent_again_on_request(
    warehouse: Resource, warehouse_props: Props, credential_calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RESEND, "1")
    assert warehouse.preview(**warehouse_props) == "update"
    assert warehouse.up(**warehouse_props) == "update"
    monkeypatch.delenv(RESEND)
    assert credential_calls == ["storage-credential"]
    assert warehouse.up(**warehouse_props) == "same"
    assert warehouse.refresh() == "same"


def test_unreadable_secret_cannot_be_sent_again(
    warehouse: Resource, warehouse_props: Props, credential_calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RESEND, "1")
    monkeypatch.delenv("STORAGE_SECRET")
    assert warehouse.preview(**warehouse_props) == "update"
    with pytest.raises(UnresolvedCredentialError, match="set the environment variable STORAGE_SECRET"):
        warehouse.up(**warehouse_props)
    assert credential_calls == []


def test_changed_profile_includes_the_credential(
    warehouse: Resource, warehouse_props: Props, credential_calls: list[str]
) -> None:
    warehouse.up(**warehouse_props | {"storage": warehouse_props["storage"] | {"sts_token_validity_seconds": 1800}})
    assert credential_calls == ["storage"]
    warehouse.up(**warehouse_props | {"storage": warehouse_props["storage"] | {"sts_token_validity_seconds": 900}})
    assert credential_calls == ["storage", "storage"]


def test_unresolvable_reference_is_a_warning_and_no_change(
    warehouse: Resource, warehouse_props: Props, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("STORAGE_SECRET")
    assert warehouse.preview(**warehouse_props) == "same"
    assert "`env:STORAGE_SECRET` is empty or not set" in capsys.readouterr().err
    assert warehouse.refresh() == "same"


def test_creating_a_warehouse_needs_the_secret(warehouse_props: Props, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STORAGE_SECRET")
    with pytest.raises(UnresolvedCredentialError, match="set the environment variable STORAGE_SECRET"):
        Resource(WarehouseProvider()).up(**warehouse_props)


def test_secret_instead_of_reference_is_refused_unrepeated(warehouse_props: Props) -> None:
    """The message must not repeat the secret."""
    raw = {"type": "access-key", "access_key_id": "AKIAXXXXXXXX", "secret_access_key": "wJalrXUtnFEMI/K7MDENG"}
    failures = Resource(WarehouseProvider()).failures(**warehouse_props | {"credential": raw})
    assert set(failures) == {"credential.access_key_id", "credential.secret_access_key"}
    assert "must be a reference to a secret" in failures["credential.secret_access_key"]
    assert "wJalrXUtnFEMI" not in str(failures)


@pytest.fixture
def role_arn(aws: AwsClient, sandbox: Any, bucket: str, unique: str) -> str:
    """A role for the bucket that the catalog may assume with the external id `shared-value`."""
    condition = {"StringEquals": {"sts:ExternalId": "shared-value"}}
    principal = {"AWS": sandbox.aws.catalog_principal_arn}
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal, "Condition": condition}
    rights = {"Effect": "Allow", "Action": "s3:*", "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]}
    iam = aws("iam")
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = iam.create_role(RoleName=f"role-{unique}", Path="/lakewright/", AssumeRolePolicyDocument=document)["Role"]
    policy = json.dumps({"Version": "2012-10-17", "Statement": [rights]})
    iam.put_role_policy(RoleName=f"role-{unique}", PolicyName="data", PolicyDocument=policy)
    return role["Arn"]


@pytest.fixture
def warehouse_by_role(warehouse_props: Props, sandbox: Any, bucket: str, role_arn: str) -> Props:
    """A warehouse that the server reaches with its own identity, through a role."""
    profile = {"bucket": bucket, "key_prefix": "main", "region": sandbox.aws.region, "assume_role_arn": role_arn}
    identity = {"type": "aws-system-identity", "external_id": "shared-value"}
    return warehouse_props | {"storage": profile, "credential": identity}


def test_warehouse_by_role_and_external_id(warehouse_by_role: Props) -> None:
    warehouse = Resource(WarehouseProvider())
    assert warehouse.up(**warehouse_by_role) == "create"
    assert warehouse.up(**warehouse_by_role) == "same"
    assert warehouse.refresh() == "same"


def test_external_id_is_sent_again_on_request(
    warehouse_by_role: Props, credential_calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A credential without a secret of its own: the server encrypts the external id, too."""
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**warehouse_by_role)
    monkeypatch.setenv(RESEND, "1")
    assert warehouse.up(**warehouse_by_role) == "update"
    monkeypatch.delenv(RESEND)
    assert credential_calls == ["storage-credential"]
    assert warehouse.up(**warehouse_by_role) == "same"
    assert warehouse.refresh() == "same"


def test_wrong_external_id_is_refused_after_the_retries(
    warehouse_by_role: Props, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEWRIGHT_ROLE_PROPAGATION", "0.1")
    wrong = warehouse_by_role | {"credential": {"type": "aws-system-identity", "external_id": "other-value"}}
    with pytest.raises(Exception, match=r"POST /management/v1/warehouse at http://.* responded with 4\d\d") as refused:
        Resource(WarehouseProvider()).up(**wrong)
    assert "other-value" not in str(refused.value)
    assert "The server may be unable to assume `assume_role_arn`. Check the role's trust policy" in str(refused.value)


def test_role_that_does_not_exist_yet_is_retried(
    warehouse_by_role: Props, aws: AwsClient, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trust policy admits the catalog only after the first try, as a fresh role behaves."""
    iam, role = aws("iam"), f"role-{unique}"
    trust = iam.get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
    shut = json.loads(json.dumps(trust).replace("shared-value", "not-yet"))
    iam.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(shut))
    tries: list[int] = []
    real = warehouses.create

    def create(client: Client, project_id: str, body: Any) -> Any:
        tries.append(1)
        try:
            return real(client, project_id, body)
        finally:
            iam.update_assume_role_policy(RoleName=role, PolicyDocument=json.dumps(trust))

    monkeypatch.setattr(warehouses, "create", create)
    assert Resource(WarehouseProvider()).up(**warehouse_by_role) == "create"
    assert len(tries) == 2


@pytest.mark.since("0.12")  # Older servers do not show the kind.
def test_credential_of_another_kind_is_drift(warehouse_by_role: Props, http: httpx.Client, sandbox: Any) -> None:
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**warehouse_by_role)
    swapped = {
        "type": "s3",
        "credential-type": "access-key",
        "aws-access-key-id": sandbox.admin.access_key_id,
        "aws-secret-access-key": sandbox.admin.secret_access_key.get_secret_value(),
    }
    profile = http.get(f"/management/v1/warehouse/{warehouse.id}").json()["storage-profile"]
    body = {"storage-profile": profile | {"assume-role-arn": None, "sts-enabled": False}, "storage-credential": swapped}
    http.post(f"/management/v1/warehouse/{warehouse.id}/storage", json=body).raise_for_status()
    assert warehouse.refresh() == "update"
    assert "credential" not in warehouse.inputs
    assert warehouse.up(**warehouse_by_role) == "update"
    now = http.get(f"/management/v1/warehouse/{warehouse.id}").json()
    assert now["storage-credential-type"] == {"type": "s3", "credential-type": "aws-system-identity"}
    assert warehouse.refresh() == "same"
