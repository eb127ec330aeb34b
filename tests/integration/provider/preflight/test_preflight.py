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
from tests.integration.provider.preflight.reported_checks import TAKEN, run_preflight
from tests.integration.provider.resource import Props, Resource

pytestmark = pytest.mark.since("0.14")  # `test_preflight_versions` covers what older servers cannot check.


def test_free_name_and_location_pass_and_storage_is_tested(reports: Path, warehouse_props: Props) -> None:
    checks = run_preflight(reports, warehouse_props)
    assert checks["name"][0] == checks["overlap"][0] == "passed"
    assert checks["server: lakekeeper-read-write"] == ("passed", "")
    assert checks["server: vended-credentials-scope-enforced"] == ("passed", "")


def test_preflight_makes_nothing(reports: Path, warehouse_props: Props, http: httpx.Client, objects: Any) -> None:
    run_preflight(reports, warehouse_props)
    response = http.get("/management/v1/warehouse", headers={"x-project-id": warehouse_props["project_id"]}).json()
    assert response["warehouses"] == []
    assert objects() == []


def test_preflight_is_off_by_default(warehouse_props: Props, objects: Any) -> None:
    assert not WarehouseProvider().check({}, warehouse_props).failures
    assert objects() == []


def test_taken_name_is_found_in_any_case(reports: Path, warehouse: Resource, warehouse_props: Props) -> None:
    same_name_props = warehouse_props | {
        "name": "MAIN",
        "storage": warehouse_props["storage"] | {"key_prefix": "beside"},
    }
    status, reason = run_preflight(reports, same_name_props, invalid_inputs=TAKEN)["name"]
    assert status == "failed"
    assert warehouse.id in reason
    assert "adopt=True" in reason


@pytest.mark.parametrize("prefix", ["main", "main/below", "main/"])
def test_overlap_names_the_other_warehouse(
    reports: Path, warehouse: Resource, warehouse_props: Props, prefix: str
) -> None:
    other = warehouse_props | {"name": "other", "storage": warehouse_props["storage"] | {"key_prefix": prefix}}
    status, reason = run_preflight(reports, other)["overlap"]
    assert status == "failed"
    assert f"warehouse `main` ({warehouse.id}) of project {warehouse_props['project_id']}" in reason
    assert "Choose a key prefix that does not overlap" in reason


def test_prefix_with_a_common_beginning_is_no_overlap(
    reports: Path, warehouse: Resource, warehouse_props: Props
) -> None:
    other = warehouse_props | {"name": "other", "storage": warehouse_props["storage"] | {"key_prefix": "main-2"}}
    assert run_preflight(reports, other)["overlap"][0] == "passed"


def test_warehouse_at_the_root_blocks_the_whole_bucket(reports: Path, warehouse_props: Props) -> None:
    root = warehouse_props | {"storage": warehouse_props["storage"] | {"key_prefix": ""}}
    Resource(WarehouseProvider()).up(**root)
    run_context.start(run_context.current().next())
    status, reason = run_preflight(reports, warehouse_props | {"name": "other"})["overlap"]
    assert status == "failed"
    assert "holds the whole bucket, and its prefix cannot be changed: use another bucket" in reason


def test_root_of_a_bucket_in_use_is_not_free(reports: Path, warehouse: Resource, warehouse_props: Props) -> None:
    root = warehouse_props | {"name": "other", "storage": warehouse_props["storage"] | {"key_prefix": ""}}
    status, reason = run_preflight(reports, root)["overlap"]
    assert status == "failed"
    assert "Declare a key prefix that does not overlap" in reason


def test_inactive_warehouses_of_other_projects_count(
    reports: Path, http: httpx.Client, warehouse_props: Props, sandbox: Any, unique: str
) -> None:
    """The server itself compares only within a project, and only endpoints of equal spelling."""
    http.post("/management/v1/project", json={"project-id": f"o-{unique}", "project-name": "another"})
    other = warehouse_props | {"project_id": f"o-{unique}", "active": False}
    other["storage"] = warehouse_props["storage"] | {"endpoint": sandbox.aws.endpoint.replace("127.0.0.1", "localhost")}
    Resource(WarehouseProvider()).up(**other)
    run_context.start(run_context.current().next())
    checks = run_preflight(reports, warehouse_props)
    status, reason = checks["overlap"]
    assert status == "failed"
    assert "inactive warehouse `main`" in reason
    assert f"of project o-{unique}" in reason
    assert "would let both write there" in reason
    assert checks["server: location-exclusive"][0] == "passed"


def test_existing_warehouse_does_not_conflict_with_itself(
    reports: Path, warehouse: Resource, warehouse_props: Props
) -> None:
    run_context.start(run_context.current().next())
    renamed = warehouse_props | {"name": "renamed"}
    checks = run_preflight(reports, renamed, olds=warehouse.inputs)
    assert checks["name"][0] == checks["overlap"][0] == "passed"
    assert checks["server: lakekeeper-read-write"][0] == "passed"


def test_replacement_is_reported_once(reports: Path, warehouse: Resource, warehouse_props: Props) -> None:
    """An engine checks it twice, the second time without the old state."""
    run_context.start(run_context.current().next())
    moved = warehouse_props | {"storage": warehouse_props["storage"] | {"key_prefix": "moved"}}
    run_preflight(reports, moved, olds=warehouse.inputs)
    WarehouseProvider().check({}, moved)
    assert len(reports.read_text().splitlines()) == 2  # The report of `warehouse`, and the report of the replacement.


def test_missing_bucket_fails(reports: Path, warehouse_props: Props, unique: str) -> None:
    missing = warehouse_props | {"storage": warehouse_props["storage"] | {"bucket": f"none-{unique}"}}
    status, reason = run_preflight(reports, missing)["server: lakekeeper-read-write"]
    assert status == "failed"
    assert reason


def test_unreadable_keys_fail_with_their_reference(
    reports: Path, warehouse_props: Props, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STORAGE_SECRET")
    status, reason = run_preflight(reports, warehouse_props)["storage"]
    assert status == "failed"
    assert "env:STORAGE_SECRET" in reason


def test_storage_that_up_will_make_is_skipped(reports: Path, warehouse_props: Props) -> None:
    later = warehouse_props | {"project_id": "made-by-this-up"}
    status, reason = run_preflight(reports, later)["storage"]
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
def test_checks_of_unknown_values_are_skipped(reports: Path, warehouse_props: Props, path: str) -> None:
    outer, _, inner = path.partition(".")
    unknown = {**warehouse_props[outer], inner: UNKNOWN} if inner else UNKNOWN
    checks = run_preflight(reports, warehouse_props | {outer: unknown})
    assert {status for status, _ in checks.values()} <= {"passed", "skipped"}
    assert any(
        reason.endswith(preflight.UNKNOWN_VALUE_REASON) for status, reason in checks.values() if status == "skipped"
    )


def test_report_contains_no_secret(reports: Path, warehouse_props: Props, sandbox: Any) -> None:
    run_preflight(reports, warehouse_props)
    assert sandbox.admin.secret_access_key.get_secret_value() not in reports.read_text()


def test_unreachable_server_is_one_failed_check(reports: Path, warehouse_props: Props) -> None:
    checks = run_preflight(reports, warehouse_props | {"server": {"endpoint": "http://127.0.0.1:9"}})
    assert checks["server"][0] == "failed"
    assert "http://127.0.0.1:9" in checks["server"][1]


class TestWithoutADryRun:
    """Checks that this machine does for servers before 0.14."""

    def profile(self, warehouse_props: Props, **changes: Any) -> S3Profile:
        return S3Profile.model_validate(warehouse_props["storage"] | changes)

    def check_storage(
        self, profile: S3Profile, credential: object, secrets: dict[str, str], *, new: bool = True
    ) -> Any:
        checks = storage.checks(profile, credential, secrets.__getitem__, new=new)
        return {check.name: (check.status, check.reason) for check in checks}

    @pytest.fixture
    def secrets(self, sandbox: Any) -> dict[str, str]:
        return {"env:ID": sandbox.admin.access_key_id, "env:SECRET": sandbox.admin.secret_access_key.get_secret_value()}

    @pytest.fixture
    def own_keys(self) -> AccessKey:
        return AccessKey(type="access-key", access_key_id="env:ID", secret_access_key="env:SECRET", external_id="x-1")

    def test_test_object_is_written_read_and_deleted(
        self, warehouse_props: Props, own_keys: AccessKey, secrets: dict[str, str], objects: Any
    ) -> None:
        checks = self.check_storage(self.profile(warehouse_props), own_keys, secrets)
        assert checks["bucket"][0] == "passed"
        assert checks["role"] == ("skipped", "no role is declared")
        assert objects() == []

    def test_bucket_without_rights_is_named_with_the_reason(
        self, warehouse_props: Props, own_keys: AccessKey, secrets: dict[str, str]
    ) -> None:
        status, reason = self.check_storage(self.profile(warehouse_props), own_keys, secrets | {"env:SECRET": "wrong"})[
            "bucket"
        ]
        assert status == "failed"
        assert "cannot be written: SignatureDoesNotMatch" in reason

    def test_role_is_assumed_with_its_external_id(
        self, warehouse_props: Props, own_keys: AccessKey, secrets: dict[str, str], aws: AwsClient, unique: str
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
        profile = self.profile(warehouse_props, sts_role_arn=arn)
        assert self.check_storage(profile, own_keys, secrets)["role"] == ("passed", f"can be assumed: {arn}")
        other_role_key = own_keys.model_copy(update={"external_id": "x-2"})
        status, reason = self.check_storage(profile, other_role_key, secrets)["role"]
        assert status == "failed"
        assert f"{arn} cannot be assumed: AccessDenied" in reason

    @pytest.mark.parametrize(("new", "status"), [(True, "skipped"), (False, "failed")])
    def test_servers_own_identity_is_checked_from_outside(
        self, warehouse_props: Props, unique: str, *, new: bool, status: str
    ) -> None:
        checks = self.check_storage(self.profile(warehouse_props), None, {})
        assert checks["bucket"][0] == "passed"
        checks_of_missing_bucket = self.check_storage(
            self.profile(warehouse_props, bucket=f"none-{unique}"), None, {}, new=new
        )
        assert checks_of_missing_bucket["bucket"][0] == status
