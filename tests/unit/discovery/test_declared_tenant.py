"""A tenant's spec from the objects of its project, without a server."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from lakewright.discovery.declaration.omission import DiscoveryError
from lakewright.discovery.declaration.stack_text import stack_text
from lakewright.discovery.declaration.storages import StorageHints
from lakewright.discovery.declaration.tenant_spec import TenantDraft, TenantNames, draft_tenant_spec
from lakewright.discovery.from_server import derive_tenant_name
from lakewright.discovery.listing.aws_roles import RoleFacts, find_required_external_id
from lakewright.discovery.listing.buckets import BucketFacts
from lakewright.discovery.listing.project_objects import FoundGrant, FoundNamespace, FoundWarehouse, ProjectObjects
from lakewright.lakekeeper.api.catalog.namespaces import ListedNamespace
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.privileges import GrantEntry, Object
from lakewright.lakekeeper.api.connection.versions import parse_server
from lakewright.lakekeeper.api.management.task_queues import QueueConfig
from lakewright.lakekeeper.buckets import bucket_settings
from lakewright.project_files.stack_files import build_schema_comment
from lakewright.spec import parse_spec
from lakewright.storage.live_storage import AccessKeys
from lakewright.validation.yaml_text import load_yaml

ROLE = "arn:aws:iam::123456789012:role/lakehouse"
ROLE_ID = "01983a4e-0000-7000-8000-000000000001"
OPENFGA = parse_server("http://lakekeeper", {"version": "0.13.3", "authz-backend": "openfga"})
IN_STORE = {
    "type": "s3",
    "flavor": "s3-compat",
    "bucket": "lake",
    "key-prefix": "acme/main",
    "endpoint": "http://127.0.0.1:9000/",
    "region": "local-01",
    "path-style-access": True,
    "sts-enabled": True,
    "remote-signing-enabled": False,
}
ON_AWS = {
    "type": "s3",
    "flavor": "aws",
    "bucket": "lake",
    "key-prefix": "acme/main",
    "region": "us-west-2",
    "assume-role-arn": ROLE,
    "sts-enabled": True,
    "remote-signing-enabled": False,
}
HINTS = StorageHints(AccessKeys("env:ID", "env:SECRET"), {ROLE: RoleFacts("the-external-id", is_known=True)})


@dataclass(frozen=True)
class AwsAccountSettings:
    """The environment's settings for AWS."""

    region: str = "us-west-2"
    s3_endpoint: str | None = None


def warehouse(profile: dict[str, Any], *paths: str, **more: Any) -> FoundWarehouse:
    response = {
        "warehouse-id": "w1",
        "project-id": "acme",
        "name": "main",
        "status": "active",
        "delete-profile": {"type": "hard"},
        "storage-credential-type": {"credential-type": "access-key"} if profile is IN_STORE else None,
        "allowed-format-versions": [1, 2, 3],
        "storage-profile": profile,
    }
    namespaces = tuple(
        FoundNamespace(ListedNamespace(tuple(path.split(".")), f"id-{path}", protected=False)) for path in paths
    )
    return FoundWarehouse(response | more, namespaces)


def draft_tenant(*warehouses: FoundWarehouse, hints: StorageHints = HINTS, **more: Any) -> TenantDraft:
    objects = ProjectObjects("acme", "acme", OPENFGA, warehouses, **more)
    return draft_tenant_spec(objects, TenantNames("acme", "tests", "sandbox"), hints, AwsAccountSettings())


def reasons(draft: TenantDraft, kind: str) -> dict[str, str]:
    return {omission.name: omission.reason for omission in draft.omissions if omission.kind == kind}


def table(kind: Any, properties: dict[str, str] | None = None) -> tuple[Tabular, dict[str, Any]]:
    schema = {"schema-id": 0, "type": "struct", "fields": [{"id": 1, "name": "c", "type": kind, "required": False}]}
    metadata = {
        "table-uuid": "t",
        "format-version": 2,
        "location": "s3://lake/acme/main/t",
        "last-column-id": 9,
        "schemas": [schema],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "sort-orders": [],
        "default-sort-order-id": 0,
        "properties": properties or {},
    }
    return Tabular(("sales",), "orders", "table", "t"), metadata


def test_spec_has_only_what_is_no_default() -> None:
    draft = draft_tenant(warehouse(IN_STORE, "sales", "sales.daily"))

    assert draft.spec == {
        "version": 1,
        "environment": "sandbox",
        "name": "acme",
        "owner": "tests",
        "adopt": True,
        "storage": {
            "main": {
                "backend": "s3",
                "bucket": "lake",
                "endpoint": "http://127.0.0.1:9000",
                "credential": {"access_key_id": "env:ID", "secret_access_key": "env:SECRET"},
            }
        },
        "warehouses": [{"name": "main", "namespaces": ["sales.daily"]}],
    }


def test_text_reads_back_as_the_same_spec() -> None:
    draft = draft_tenant(replace(warehouse(IN_STORE, "sales"), queues={"tabular_purge": QueueConfig({"a": "b"}, 900)}))

    text = stack_text(draft, "project acme")

    assert yaml.safe_load(text)["config"]["lakewright:tenant"] == draft.spec
    assert max(len(line) for line in text.splitlines()) <= 118


@pytest.mark.parametrize("text", ["1e3", "0o14", "line 1\nline 2", "a\n---\nb", "on", "x: y #z", "\u2028"])
def test_text_of_any_form_reads_back_on_one_line(text: str) -> None:
    """Servers have comments of several lines, and names that YAML 1.2 reads as numbers and PyYAML does not."""
    spec = {"owner": text, "tables": [{"name": text, "properties": {text: text}}], "role_members": {text: {}}}

    written = stack_text(TenantDraft(spec, (), comments={f"role_members.{text}": "a\nb"}), "project acme")

    assert load_yaml(written)["config"]["lakewright:tenant"] == spec
    assert len(written.split("\n")) == 12
    assert not re.search(r"(?<![\w\"])(1e3|0o14)(?![\w\"])", written)


def test_role_on_aws_gives_the_external_id() -> None:
    storage = draft_tenant(warehouse(ON_AWS)).spec["storage"]["main"]

    assert (storage["backend"], storage["role_arn"], storage["external_id"]) == ("existing", ROLE, "the-external-id")


def test_unreadable_secrets_are_placeholders() -> None:
    hints = StorageHints(None, {ROLE: RoleFacts(problem="AWS returned AccessDenied")})
    second = warehouse(ON_AWS | {"bucket": "other", "key-prefix": "b"}, name="second")

    draft = draft_tenant(warehouse(IN_STORE), second, hints=hints)

    assert draft.open_references == (
        "config:lake_access_key_id",
        "config:lake_secret_access_key",
        "config:external_id_other",
    )
    assert "AccessDenied" in draft.comments["storage.other"]


@pytest.mark.parametrize(
    ("profile", "more", "reason"),
    [
        (IN_STORE | {"type": "onelake"}, {}, "no backend in specs"),
        (IN_STORE | {"key-prefix": None}, {}, "whole bucket"),
        (IN_STORE | {"sts-enabled": False}, {}, "neither vends credentials nor signs"),
        (IN_STORE | {"legacy-md5-behavior": True}, {}, "storage.legacy_md5_behavior|legacy_md5_behavior"),
        (IN_STORE, {"status": "inactive"}, "inactive"),
        (IN_STORE, {"delete-profile": {"type": "soft", "expiration-seconds": 90}}, "whole days"),
        (IN_STORE, {"name": "a name"}, "letters, digits"),
        (ON_AWS | {"assume-role-arn": None}, {}, "no `assume-role-arn`"),
        (ON_AWS, {"storage-credential-type": {"credential-type": "access-key"}}, "access key on AWS"),
    ],
)
def test_warehouse_without_a_form_in_specs_is_listed(
    profile: dict[str, Any], more: dict[str, Any], reason: str
) -> None:
    good = warehouse(IN_STORE | {"key-prefix": "acme/good"}, name="good")

    draft = draft_tenant(good, warehouse(profile, **more))

    assert [entry["name"] for entry in draft.spec["warehouses"]] == ["good"]
    (omission_reason,) = reasons(draft, "warehouse").values()
    assert any(part in omission_reason for part in reason.split("|"))


def test_project_without_a_declarable_warehouse_is_refused() -> None:
    with pytest.raises(DiscoveryError, match=r"no warehouse that a spec can declare\n.*whole bucket"):
        draft_tenant(warehouse(IN_STORE | {"key-prefix": None}))


@pytest.mark.parametrize("kind", ["long", "decimal(12, 2)", "fixed[16]", "uuid", "timestamptz", "binary"])
def test_columns_keep_their_types(kind: str) -> None:
    tabular, metadata = table(kind, {"owner": "spark", "comment": "x"})
    live_warehouse = replace(warehouse(IN_STORE, "sales"), tabulars=(tabular,), metadata={tabular: metadata})

    (written,) = draft_tenant(live_warehouse).spec["tables"]

    assert written["properties"] == {"comment": "x"}
    assert parse_spec(draft_tenant(live_warehouse).spec, "test").tables[0].columns[0].type == kind.replace(" ", "")


def test_table_of_an_unknown_type_is_listed() -> None:
    tabular, metadata = table("hyperloglog")
    live_warehouse = replace(warehouse(IN_STORE, "sales"), tabulars=(tabular,), metadata={tabular: metadata})

    draft = draft_tenant(live_warehouse)

    assert "tables" not in draft.spec
    assert "expected an Iceberg type" in reasons(draft, "table")["main.sales.orders"]


def test_tables_that_no_spec_declares_are_listed() -> None:
    preset = ("operator-port-result", "operator-console-messages", "workflow-runtime-statistics", "operator-port-state")
    generic = Tabular(("sales",), "g", "generic-table")
    tabulars = (Tabular((preset[0],), "r1"), generic, Tabular(("sales",), "old", dropped=True))
    live_warehouse = replace(warehouse(IN_STORE, *preset, "sales"), tabulars=tabulars)

    draft = draft_tenant(live_warehouse)

    assert draft.spec["warehouses"][0]["namespaces"] == {"preset": "texera", "also": ["sales"]}
    assert "runs of texera" in reasons(draft, "table")["main.operator-port-result.r1"]
    assert "can still be restored" in reasons(draft, "table")["main.sales.old"]
    assert "remains as it is" in reasons(draft, "generic-table")["main.sales.g"]


def test_tables_of_lakewright_itself_are_listed() -> None:
    sales, metadata = table("int")
    runs, incidents = (replace(sales, namespace=("ops",), name=name) for name in ("job_runs", "incidents"))
    live_warehouse = replace(
        warehouse(IN_STORE, "ops"),
        tabulars=(runs, incidents),
        metadata={runs: metadata, incidents: metadata},
    )

    draft = draft_tenant(live_warehouse)

    assert [entry["name"] for entry in draft.spec["tables"]] == ["main.ops.incidents"]
    assert "jobs of Lakewright make this table" in reasons(draft, "table")["main.ops.job_runs"]


def grant(privilege: str, principal: str, kind: str = "user") -> FoundGrant:
    on = Object("warehouse", project_id="acme", warehouse_id="w1")
    return FoundGrant(on, GrantEntry(privilege, "user" if kind == "user" else "role", principal), "main")


def test_grants_and_members_are_declared() -> None:
    draft = draft_tenant(
        warehouse(IN_STORE),
        roles={ROLE_ID: {"name": "analysts"}},
        members={ROLE_ID: frozenset({("user", "oidc~ada")})},
        grants=(grant("select", ROLE_ID, "role"), grant("ownership", "oidc~deployer"), grant("ownership", "oidc~ada")),
        identity="oidc~deployer",
    )

    assert draft.spec["grants"] == [
        {"to": "role:analysts", "privilege": "select", "on": {"warehouse": "main"}},
        {"to": "user:oidc~ada", "privilege": "ownership", "on": {"warehouse": "main"}},
    ]
    assert draft.spec["role_members"] == {"analysts": {"users": ["oidc~ada"]}}
    assert draft.spec["standard_roles"] is False


def test_roles_and_grants_of_others_are_listed() -> None:
    other = "01983a4e-0000-7000-8000-000000000009"
    draft = draft_tenant(
        warehouse(IN_STORE),
        roles={ROLE_ID: {"name": "analysts"}, other: {"name": "idle"}},
        members={ROLE_ID: frozenset({("role", other)})},
        grants=(grant("select", ROLE_ID, "role"), grant("select", "01983a4e-0000-7000-8000-00000000ffff", "role")),
    )

    assert "roles are members of it (idle)" in reasons(draft, "member")["analysts"]
    assert "no declared grant names it" in reasons(draft, "role")["idle"]
    assert any("another project" in reason for reason in reasons(draft, "grant").values())
    assert "role_members" not in draft.spec


def test_an_invalid_table_takes_only_its_own_grants() -> None:
    """Its grants are invalid, too. Positions of other grants change when these are removed."""
    good, metadata = table("int")
    bad = replace(good, name="orders/\n2026", tabular_id="t2")
    on = Object("table", "t2", project_id="acme", warehouse_id="w1")
    on_bad = FoundGrant(on, GrantEntry("select", "user", "oidc~ada"), "main", ("sales", bad.name))

    draft = draft_tenant(
        replace(warehouse(IN_STORE, "sales"), tabulars=(good, bad), metadata={good: metadata, bad: metadata}),
        grants=(on_bad, grant("select", "oidc~bob")),
    )

    assert [entry["name"] for entry in draft.spec["tables"]] == ["main.sales.orders"]
    assert [entry["to"] for entry in draft.spec["grants"]] == ["user:oidc~bob"]


def test_external_id_is_read_from_the_trust_policy() -> None:
    statement = {"Effect": "Allow", "Condition": {"StringEquals": {"sts:ExternalId": "x-1"}}}

    assert find_required_external_id({"Statement": [statement, {"Effect": "Allow"}]}) == "x-1"
    assert find_required_external_id({"Statement": {"Effect": "Allow"}}) is None


def test_tenant_is_named_after_its_project() -> None:
    assert derive_tenant_name("acme", "Anything") == "acme"
    assert derive_tenant_name("01983a4e-0000-7000-8000-000000000001", "Sales & Team") == "sales-team"
    with pytest.raises(DiscoveryError, match=r"Choose a name with `--name`"):
        derive_tenant_name("0198", "0198")


def with_bucket(facts: BucketFacts, *profiles: dict[str, Any]) -> TenantDraft:
    hints = replace(HINTS, buckets={"lake": facts}, environment_tags={"team": "platform"})
    warehouses = [warehouse(profile, name=f"w{number}") for number, profile in enumerate(profiles or (IN_STORE,))]
    return draft_tenant(*warehouses, hints=hints)


TAGS = {"lakewright:tenant": "acme", "lakewright:owner": "sales", "team": "platform", "cost": "42"}


def test_named_bucket_is_made_by_the_stack() -> None:
    facts = BucketFacts(
        TAGS, versioning=True, lifecycle=bucket_settings.lifecycle(12), policy=bucket_settings.tls_only("lake")
    )

    draft = with_bucket(facts, IN_STORE | {"endpoint": "https://store.example/"})

    bucket_fields = {"create", "versioning", "noncurrent_version_days", "tls_only"}
    storage = draft.spec["storage"]["main"]
    assert {name: storage[name] for name in bucket_fields} == {
        "create": True,
        "versioning": True,
        "noncurrent_version_days": 12,
        "tls_only": True,
    }
    assert (draft.spec["owner"], draft.spec["labels"]) == ("sales", {"cost": "42"})


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (BucketFacts({}), "would change its tags lakewright:owner, lakewright:tenant, team"),
        (BucketFacts(TAGS, lifecycle=bucket_settings.lifecycle(12)), "lifecycle rules"),
        (BucketFacts(TAGS, policy='{"Statement": []}'), "bucket policy"),
        (BucketFacts(problem="the store returned AccessDenied"), "AccessDenied"),
    ],
)
def test_bucket_that_a_stack_would_change_stays_outside(facts: BucketFacts, reason: str) -> None:
    draft = with_bucket(facts)

    assert "create" not in draft.spec["storage"]["main"]
    assert reason in reasons(draft, "bucket")["lake"]


def test_bucket_on_aws_is_described_and_stays_outside() -> None:
    draft = with_bucket(BucketFacts(TAGS, versioning=True, encryption="aws:kms", logging="s3://logs/lake/"), ON_AWS)

    assert "encryption aws:kms; versioning on" in draft.comments["storage.main"]
    assert "access logs to s3://logs/lake/" in reasons(draft, "bucket")["lake"]


@pytest.mark.parametrize(
    ("schema_folder", "comment"),
    [
        ("schema", "# yaml-language-server: $schema=../schema/tenant.schema.json\n"),
        ("docs/schema", "# yaml-language-server: $schema=../docs/schema/tenant.schema.json\n"),
        ("elsewhere", ""),
    ],
)
def test_schema_is_named_where_the_project_has_it(tmp_path: Path, schema_folder: str, comment: str) -> None:
    (tmp_path / schema_folder).mkdir(parents=True)
    (tmp_path / schema_folder / "tenant.schema.json").write_text("{}")

    assert build_schema_comment(tmp_path, tmp_path / "tenants") == comment
