"""Declarations: values as before the engine, unknown values pass, all mistakes are found, and each change's effect."""

from __future__ import annotations

import base64
from typing import Any

import dill
import pytest
from lakewright.lakekeeper.grants.grant import GrantProvider
from lakewright.lakekeeper.grants.grants import GrantsProvider
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.identity.role_members import RoleMembersProvider
from lakewright.lakekeeper.identity.user import UserProvider
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider.inputs import UNKNOWN, Replace, Rotate, StateOnly, Update, has_unknown
from lakewright.lakekeeper.server.bootstrap import BootstrapProvider
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.storage.external_id import ExternalIdProvider
from lakewright.lakekeeper.tenant.deletion_guard import DeletionGuardProvider
from lakewright.lakekeeper.warehouse.model import WarehouseArgs
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.lakekeeper.warehouse.task_queue_config import TaskQueueConfigProvider
from pulumi.dynamic import ResourceProvider
from pulumi.dynamic.dynamic import serialize_provider

ROLE = "arn:aws:iam::123456789012:role/lake"
DECLARED: dict[str, Any] = {
    "server": {"endpoint": "https://lake.test"},
    "project_id": "tenant",
    "name": "main",
    "storage": {"bucket": "lake", "region": "us-east-1", "assume_role_arn": ROLE},
    "credential": {"type": "aws-system-identity", "external_id": "abc"},
}


def with_storage(**changes: Any) -> dict[str, Any]:
    return DECLARED | {"storage": DECLARED["storage"] | changes}


def failures(**changes: Any) -> dict[str, str]:
    result = WarehouseProvider().check({}, DECLARED | changes)
    return {failure.property: failure.reason for failure in result.failures}


def test_floats_and_missing_values_are_no_change() -> None:
    """Engines send integers as floats and leave out None."""
    typed = WarehouseArgs.parse(DECLARED | {"delete_profile": {"type": "soft", "expiration_seconds": 60}})
    wired = WarehouseArgs.parse(
        DECLARED
        | {"delete_profile": {"type": "soft", "expiration_seconds": 60.0}, "protected": None, "__provider": "x"}
    )
    assert typed == wired
    assert WarehouseArgs.parse(typed.props()) == typed


def test_declarations_are_normalised_as_by_the_server() -> None:
    warehouse = WarehouseArgs.parse(
        with_storage(key_prefix="/a/b/ ", endpoint="HTTPS://S3.Example.com:443", flavor="minio", sts_role_arn="")
    )
    assert warehouse.storage.key_prefix == "a/b"
    assert warehouse.storage.endpoint == "https://s3.example.com/"
    assert warehouse.storage.flavor == "s3-compat"
    assert warehouse.storage.sts_role_arn is None
    with_versions = WarehouseArgs.parse(DECLARED | {"allowed_format_versions": [3.0, 2.0, 2.0]})
    assert with_versions.allowed_format_versions == [2, 3]


def test_all_mistakes_are_found_with_their_properties() -> None:
    problems = failures(
        name="a/b",
        storage={"bucket": "Bad_Bucket", "key_prefix": "x/../y", "nonsense": 1, "sts_token_validity_seconds": 5},
        credential={"type": "access-key", "access_key_id": "AKIA", "secret_access_key": "env:OK"},
        delete_profile={"type": "gentle"},
        allowed_format_versions=[4],
        deletion="perhaps",
    )
    assert problems.keys() == {
        "name",
        "storage.bucket",
        "storage.region",
        "storage.key_prefix",
        "storage.nonsense",
        "storage.sts_token_validity_seconds",
        "credential.access_key_id",
        "delete_profile",
        "allowed_format_versions.0",
        "deletion",
    }
    assert problems["storage.region"] == "is required"
    assert problems["storage.nonsense"] == "is not a property here"
    assert problems["delete_profile"] == "`type` must be one of `hard`, `soft`"


@pytest.mark.parametrize(
    ("changes", "property_", "expected"),
    [
        (with_storage(assume_role_arn=None), "storage", "vended credentials need a role"),
        (
            with_storage(storage_layout={"type": "tabular-only", "tabular": "{name}"}),
            "storage.storage_layout",
            "{uuid}",
        ),
        (
            with_storage(storage_layout={"type": "full-hierarchy"}),
            "storage.storage_layout",
            "`namespace` and `tabular`",
        ),
        ({"allowed_format_versions": []}, "allowed_format_versions", "at least one"),
        ({"allowed_format_versions": [1], "default_format_version": 3}, "", "not among"),
        ({"default_format_version": 3}, "", "requires `allowed_format_versions`"),
        (with_storage(endpoint="https://user:pw@s3.test"), "storage.endpoint", "user name or password"),
        (with_storage(endpoint="s3.test"), "storage.endpoint", "looks like `https://host:port`"),
    ],
)
def test_conflicting_properties_are_reported(changes: dict[str, Any], property_: str, expected: str) -> None:
    assert expected in failures(**changes)[property_]


def test_unknown_values_pass_everywhere() -> None:
    unknown = with_storage(bucket=UNKNOWN, assume_role_arn=UNKNOWN, sts_session_tags={"tenant": UNKNOWN}) | {
        "project_id": UNKNOWN,
        "credential": {"type": "aws-system-identity", "external_id": UNKNOWN},
        "delete_profile": UNKNOWN,
        "server": {"endpoint": UNKNOWN},
    }
    result = WarehouseProvider().check({}, unknown)
    assert result.failures == []
    assert has_unknown(result.inputs["storage"]["bucket"])
    assert has_unknown(result.inputs["credential"]["external_id"])
    assert result.inputs["storage"]["region"] == "us-east-1"


def test_mistakes_beside_unknown_values_are_found() -> None:
    problems = failures(storage={"bucket": UNKNOWN, "region": "us-east-1", "sts_enabled": False, "flavor": "gold"})
    assert problems.keys() == {"storage.flavor"}


def differences(old: dict[str, Any], new: dict[str, Any]) -> dict[str, object]:
    changes = difference.list_changes(WarehouseArgs.parse(old), WarehouseArgs.parse(new))
    return {change.path: change.mark for change in changes}


@pytest.mark.parametrize(
    ("new", "path", "mark"),
    [
        (with_storage(bucket="other"), "storage.bucket", Replace()),
        (with_storage(key_prefix="other"), "storage.key_prefix", Replace()),
        (with_storage(region="eu-west-1"), "storage.region", Replace()),
        (with_storage(bucket=UNKNOWN), "storage.bucket", Replace()),
        (with_storage(assume_role_arn=f"{ROLE}2"), "storage.assume_role_arn", Update(via="storage")),
        (
            with_storage(aws_kms_key_arn="arn:aws:kms:r:1:key/x".replace(":1:", ":123456789012:")),
            "storage.aws_kms_key_arn",
            Update(via="storage"),
        ),
        (DECLARED | {"project_id": "other"}, "project_id", Replace()),
        (DECLARED | {"name": "other"}, "name", Update(via="rename")),
        (DECLARED | {"protected": True}, "protected", Update(via="protection")),
        (DECLARED | {"deletion": "purge"}, "deletion", StateOnly()),
        (DECLARED | {"server": {"endpoint": "https://other.test"}}, "server", StateOnly()),
        (
            DECLARED | {"credential": {"type": "aws-system-identity", "external_id": "other"}},
            "credential.external_id",
            Rotate(via="storage-credential"),
        ),
        (
            DECLARED | {"delete_profile": {"type": "soft", "expiration_seconds": 1}},
            "delete_profile",
            Update(via="delete-profile"),
        ),
    ],
)
def test_effect_of_each_changed_property(new: dict[str, Any], path: str, mark: object) -> None:
    assert differences(DECLARED, new) == {path: mark}


def test_properties_left_to_the_server_are_no_change() -> None:
    assert differences(DECLARED | {"allowed_format_versions": [2]}, DECLARED) == {}
    assert differences(DECLARED | {"adopt": True}, DECLARED) == {}


@pytest.mark.parametrize(
    "provider",
    [
        BootstrapProvider,
        DeletionGuardProvider,
        ExternalIdProvider,
        GrantProvider,
        GrantsProvider,
        RoleMembersProvider,
        RoleProvider,
        UserProvider,
        NamespaceProvider,
        ProjectProvider,
        TaskQueueConfigProvider,
        WarehouseProvider,
    ],
)
def test_providers_are_stored_by_name_only(provider: type[ResourceProvider]) -> None:
    """Module path and class name are in every stack's state: a rename needs a shim under the old name."""
    stored = base64.b64decode(serialize_provider(provider()))
    assert len(stored) < 150
    assert provider.__module__.encode() in stored
    assert provider.__module__.startswith("lakewright.lakekeeper.")
    assert type(dill.loads(stored)) is provider
    assert provider.serialize_as_secret_always is False
