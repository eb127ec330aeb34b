"""Pre-flight of a declared warehouse: every check by name, against a real server and a real store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.inputs import UNKNOWN
from lakewright.lakekeeper.storage.credentials import AccessKey
from lakewright.lakekeeper.storage.profiles import S3Profile
from lakewright.lakekeeper.warehouse import preflight
from lakewright.lakekeeper.warehouse import storage_preflight as storage
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider

from tests.integration.provider.conftest import AwsClient
from tests.integration.provider.preflight.reported_checks import TAKEN, validated
from tests.integration.provider.resource import Props, Resource

pytestmark = pytest.mark.since("0.14")  # `test_preflight_versions` covers what older servers cannot check.


def test_free_name_and_place_pass_and_storage_is_tested(reports: Path, declared: Props) -> None:
    found = validated(reports, declared)
    assert found["name"][0] == found["overlap"][0] == "passed"
    assert found["server: lakekeeper-read-write"] == ("passed", "")
    assert found["server: vended-credentials-scope-enforced"] == ("passed", "")


def test_preflight_makes_nothing(reports: Path, declared: Props, http: httpx.Client, objects: Any) -> None:
    validated(reports, declared)
    listed = http.get("/management/v1/warehouse", headers={"x-project-id": declared["project_id"]}).json()
    assert listed["warehouses"] == []
    assert objects() == []


def test_preflight_is_off_by_default(declared: Props, objects: Any) -> None:
    assert not WarehouseProvider().check({}, declared).failures
    assert objects() == []


def test_taken_name_is_found_in_any_case(reports: Path, warehouse: Resource, declared: Props) -> None:
    elsewhere = declared | {"name": "MAIN", "storage": declared["storage"] | {"key_prefix": "beside"}}
    status, reason = validated(reports, elsewhere, refused=TAKEN)["name"]
    assert status == "failed"
    assert warehouse.id in reason
    assert "adopt=True" in reason


@pytest.mark.parametrize("prefix", ["main", "main/below", "main/"])
def test_overlap_names_the_other_warehouse(reports: Path, warehouse: Resource, declared: Props, prefix: str) -> None:
    other = declared | {"name": "other", "storage": declared["storage"] | {"key_prefix": prefix}}
    status, reason = validated(reports, other)["overlap"]
    assert status == "failed"
    assert f"warehouse `main` ({warehouse.id}) of project {declared['project_id']}" in reason
    assert "Choose a key prefix that does not overlap" in reason


def test_prefix_with_a_common_beginning_is_no_overlap(reports: Path, warehouse: Resource, declared: Props) -> None:
    other = declared | {"name": "other", "storage": declared["storage"] | {"key_prefix": "main-2"}}
    assert validated(reports, other)["overlap"][0] == "passed"


def test_warehouse_at_the_root_blocks_the_whole_bucket(reports: Path, declared: Props) -> None:
    root = declared | {"storage": declared["storage"] | {"key_prefix": ""}}
    Resource(WarehouseProvider()).up(**root)
    run_context.start(run_context.current().next())
    status, reason = validated(reports, declared | {"name": "other"})["overlap"]
    assert status == "failed"
    assert "holds the whole bucket, and its prefix cannot be changed: use another bucket" in reason


def test_root_of_a_bucket_in_use_is_not_free(reports: Path, warehouse: Resource, declared: Props) -> None:
    root = declared | {"name": "other", "storage": declared["storage"] | {"key_prefix": ""}}
    status, reason = validated(reports, root)["overlap"]
    assert status == "failed"
    assert "Declare a key prefix that does not overlap" in reason


def test_inactive_warehouses_of_other_projects_count(
    reports: Path, http: httpx.Client, declared: Props, sandbox: Any, unique: str
) -> None:
    """The server itself compares only within a project, and only endpoints of equal spelling."""
    http.post("/management/v1/project", json={"project-id": f"o-{unique}", "project-name": "another"})
    other = declared | {"project_id": f"o-{unique}", "active": False}
    other["storage"] = declared["storage"] | {"endpoint": sandbox.aws.endpoint.replace("127.0.0.1", "localhost")}
    Resource(WarehouseProvider()).up(**other)
    run_context.start(run_context.current().next())
    found = validated(reports, declared)
    status, reason = found["overlap"]
    assert status == "failed"
    assert "inactive warehouse `main`" in reason
    assert f"of project o-{unique}" in reason
    assert "would let both write there" in reason
    assert found["server: location-exclusive"][0] == "passed"


def test_existing_warehouse_does_not_conflict_with_itself(reports: Path, warehouse: Resource, declared: Props) -> None:
    run_context.start(run_context.current().next())
    renamed = declared | {"name": "renamed"}
    found = validated(reports, renamed, olds=warehouse.inputs)
    assert found["name"][0] == found["overlap"][0] == "passed"
    assert found["server: lakekeeper-read-write"][0] == "passed"


def test_replacement_is_reported_once(reports: Path, warehouse: Resource, declared: Props) -> None:
    """An engine checks it twice, the second time without the old state."""
    run_context.start(run_context.current().next())
    moved = declared | {"storage": declared["storage"] | {"key_prefix": "moved"}}
    validated(reports, moved, olds=warehouse.inputs)
    WarehouseProvider().check({}, moved)
    assert len(reports.read_text().splitlines()) == 2  # The report of `warehouse`, and this one.


def test_missing_bucket_fails(reports: Path, declared: Props, unique: str) -> None:
    missing = declared | {"storage": declared["storage"] | {"bucket": f"none-{unique}"}}
    status, reason = validated(reports, missing)["server: lakekeeper-read-write"]
    assert status == "failed"
    assert reason


def test_unreadable_keys_fail_with_their_reference(
    reports: Path, declared: Props, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STORAGE_SECRET")
    status, reason = validated(reports, declared)["storage"]
    assert status == "failed"
    assert "env:STORAGE_SECRET" in reason


def test_storage_that_up_will_make_is_skipped(reports: Path, declared: Props) -> None:
    later = declared | {"project_id": "made-by-this-up"}
    status, reason = validated(reports, later)["storage"]
    assert status == "skipped"
    assert "known only after an `up`" in reason


@pytest.mark.parametrize(
    "path",
    [
        "project_id",
        "name",
        "storage",
        "storage.type",
        "storage.bucket",
        "storage.storage_layout",
        "credential",
        "credential.external_id",
        "delete_profile",
        "allowed_format_versions",
    ],
)
def test_checks_of_unknown_values_are_skipped(reports: Path, declared: Props, path: str) -> None:
    outer, _, inner = path.partition(".")
    unknown = {**declared[outer], inner: UNKNOWN} if inner else UNKNOWN
    found = validated(reports, declared | {outer: unknown})
    assert {status for status, _ in found.values()} <= {"passed", "skipped"}
    assert any(reason.endswith(preflight.NOT_KNOWN) for status, reason in found.values() if status == "skipped")


def test_report_contains_no_secret(reports: Path, declared: Props, sandbox: Any) -> None:
    validated(reports, declared)
    assert sandbox.admin.secret_access_key.get_secret_value() not in reports.read_text()


def test_unreachable_server_is_one_failed_check(reports: Path, declared: Props) -> None:
    found = validated(reports, declared | {"server": {"endpoint": "http://127.0.0.1:9"}})
    assert found["server"][0] == "failed"
    assert "http://127.0.0.1:9" in found["server"][1]


class TestWithoutADryRun:
    """What this machine checks for servers before 0.14."""

    def profile(self, declared: Props, **changes: Any) -> S3Profile:
        return S3Profile.model_validate(declared["storage"] | changes)

    def found(self, profile: S3Profile, credential: object, secrets: dict[str, str], *, new: bool = True) -> Any:
        checks = storage.checks(profile, credential, secrets.__getitem__, new=new)
        return {check.name: (check.status, check.reason) for check in checks}

    @pytest.fixture
    def secrets(self, sandbox: Any) -> dict[str, str]:
        return {"env:ID": sandbox.admin.access_key_id, "env:SECRET": sandbox.admin.secret_access_key.get_secret_value()}

    @pytest.fixture
    def own_keys(self) -> AccessKey:
        return AccessKey(type="access-key", access_key_id="env:ID", secret_access_key="env:SECRET", external_id="x-1")

    def test_test_object_is_written_read_and_deleted(
        self, declared: Props, own_keys: AccessKey, secrets: dict[str, str], objects: Any
    ) -> None:
        found = self.found(self.profile(declared), own_keys, secrets)
        assert found["bucket"][0] == "passed"
        assert found["role"] == ("skipped", "no role is declared")
        assert objects() == []

    def test_bucket_without_rights_is_named_with_the_reason(
        self, declared: Props, own_keys: AccessKey, secrets: dict[str, str]
    ) -> None:
        status, reason = self.found(self.profile(declared), own_keys, secrets | {"env:SECRET": "wrong"})["bucket"]
        assert status == "failed"
        assert "cannot be written: SignatureDoesNotMatch" in reason

    def test_role_is_assumed_with_its_external_id(
        self, declared: Props, own_keys: AccessKey, secrets: dict[str, str], aws: AwsClient, unique: str
    ) -> None:
        trust = {
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"AWS": "*"},
            "Condition": {"StringEquals": {"sts:ExternalId": "x-1"}},
        }
        document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
        arn = aws("iam").create_role(RoleName=unique, Path="/lakewright/", AssumeRolePolicyDocument=document)["Role"][
            "Arn"
        ]
        profile = self.profile(declared, sts_role_arn=arn)
        assert self.found(profile, own_keys, secrets)["role"] == ("passed", f"can be assumed: {arn}")
        stranger = own_keys.model_copy(update={"external_id": "x-2"})
        status, reason = self.found(profile, stranger, secrets)["role"]
        assert status == "failed"
        assert f"{arn} cannot be assumed: AccessDenied" in reason

    @pytest.mark.parametrize(("new", "status"), [(True, "skipped"), (False, "failed")])
    def test_servers_own_identity_is_checked_from_outside(
        self, declared: Props, unique: str, *, new: bool, status: str
    ) -> None:
        there = self.found(self.profile(declared), None, {})
        assert there["bucket"][0] == "passed"
        gone = self.found(self.profile(declared, bucket=f"none-{unique}"), None, {}, new=new)
        assert gone["bucket"][0] == status
