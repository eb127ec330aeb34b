"""Actors of changes: only a record of the same change, after the stack's last update, names one."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lakewright.drift.actors.cloudtrail import AwsAccess, find_region
from lakewright.drift.actors.cloudtrail_events import is_cause, read_actor
from lakewright.drift.actors.lakekeeper_log import LakekeeperLogSource
from lakewright.drift.actors.managed_fields import actor_of_field
from lakewright.drift.actors.source import AuditSourceError, DriftedObject, choose_actor
from lakewright.drift.model import Actor, Difference, DifferenceKind
from lakewright.drift.session import StackResource
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.steps.object_read import ObjectRead

UPDATED = "2026-11-22T12:00:00.5Z"
LATER = "2026-11-22T12:00:07.123456Z"
WAREHOUSE = "019aa2c4-0000-7000-8000-000000000001"
LAKEKEEPER = "pulumi-python:dynamic/lakekeeper:"


def create_drifted_object(kind: str, object_id: str, path: str, **inputs: Any) -> DriftedObject:
    """Return a difference of a property, or of a whole object without a path."""
    state = ResourceState(f"urn:pulumi:acme::lake::{kind}::a", kind, custom=True, id=object_id, inputs=inputs)
    resource = StackResource("acme", "acme", "prod", state, updated=UPDATED)
    kind_of_difference = DifferenceKind.CHANGED if path else DifferenceKind.GONE
    return DriftedObject(Difference("acme", "acme", state.urn, kind, "a", path, 1, 2, kind_of_difference), resource)


def audit_event(method: str, uri: str, user: str = "oidc~mallory", at: str = LATER, **changes: Any) -> str:
    """Return an audit event as Lakekeeper 0.13.3 logs it."""
    event = {
        "timestamp": at,
        "level": "INFO",
        "message": "Authorization succeeded event",
        "event_source": "audit",
        "action": {"action_name": "set_protection"},
        "entity": {"entity_type": "warehouse", "warehouse-id": WAREHOUSE},
        "actor": {"actor_type": "principal", "principal": user},
        "privilege_source": "authorizer",
        "decision": "allowed",
        "target": "lakekeeper::service::events::backends::audit",
        "spans": [{"method": method, "request_id": "01a2", "uri": uri, "version": "HTTP/1.1", "name": "request"}],
    }
    return json.dumps(event | changes) + "\n"


PROTECTION = f"/management/v1/warehouse/{WAREHOUSE}/protection"
STORAGE = f"/management/v1/warehouse/{WAREHOUSE}/storage"
TABLES = f"/catalog/v1/{WAREHOUSE}/namespaces/sales%1Feu/tables/orders"


def actor_in_log(tmp_path: Path, *lines: str, of: DriftedObject) -> Actor | None:
    log = tmp_path / "lakekeeper.log"
    log.write_text("Lakekeeper Version: 0.13.3\n" + "".join(lines))
    actors = LakekeeperLogSource(log).actors([of])
    return choose_actor((actor for _, actor in actors), UPDATED)


PROTECTED = create_drifted_object(f"{LAKEKEEPER}Warehouse", WAREHOUSE, "protected")


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ([audit_event("POST", PROTECTION)], "oidc~mallory"),
        ([audit_event("POST", PROTECTION), audit_event("POST", PROTECTION, at=LATER)], "oidc~mallory"),
        ([audit_event("POST", PROTECTION, actor={"actor_type": "anonymous"})], "anonymous"),
        # Another property, another object, another decision, a read, an earlier time.
        ([audit_event("POST", STORAGE)], None),
        ([audit_event("POST", PROTECTION.replace("0001", "0002"))], None),
        ([audit_event("POST", PROTECTION, decision="denied")], None),
        ([audit_event("GET", PROTECTION)], None),
        ([audit_event("POST", PROTECTION, at="2026-11-22T12:00:00.4Z")], None),
        # Each of two users may have made the change.
        ([audit_event("POST", PROTECTION), audit_event("POST", PROTECTION, "oidc~eve")], None),
        # Lakekeeper's own tasks are no users.
        ([audit_event("POST", PROTECTION, actor={"actor_type": "lakekeeper-internal"})], None),
        (['{"event_source": "audit", broken\n'], None),
    ],
)
def test_lakekeeper_log_names_who_made_this_change(tmp_path: Path, lines: list[str], name: str | None) -> None:
    actor = actor_in_log(tmp_path, *lines, of=PROTECTED)

    assert (actor.name if actor else None) == name


@pytest.mark.parametrize(
    ("of", "line"),
    [
        (
            create_drifted_object(f"{LAKEKEEPER}Warehouse", WAREHOUSE, ""),
            audit_event("DELETE", PROTECTION.rpartition("/")[0]),
        ),
        (
            create_drifted_object(f"{LAKEKEEPER}Warehouse", WAREHOUSE, "delete_profile.type"),
            audit_event("POST", f"{STORAGE[:-7]}delete-profile"),
        ),
        (
            create_drifted_object(
                f"{LAKEKEEPER}Namespace", "x", "properties.owner", warehouse_id=WAREHOUSE, name="sales.eu"
            ),
            audit_event("POST", f"/catalog/v1/{WAREHOUSE}/namespaces/sales%1Feu/properties"),
        ),
        (
            create_drifted_object(
                f"{LAKEKEEPER}Table",
                "t",
                "columns[0].type",
                warehouse_id=WAREHOUSE,
                namespace="sales.eu",
                name="orders",
            ),
            audit_event("POST", f"{TABLES}?snapshots=all"),
        ),
        (
            create_drifted_object(f"{LAKEKEEPER}Role", "r1", "description"),
            audit_event("POST", "/management/v1/role/r1"),
        ),
        (
            create_drifted_object(f"{LAKEKEEPER}User", "oidc~bob", "email"),
            audit_event("PUT", "/management/v1/user/oidc~bob"),
        ),
        (
            create_drifted_object(
                f"{LAKEKEEPER}Grants", "g", "grants", on={"type": "warehouse", "warehouse_id": WAREHOUSE}
            ),
            audit_event("POST", f"/management/v1/permissions/warehouse/{WAREHOUSE}/assignments"),
        ),
    ],
)
def test_requests_of_each_kind_of_object(tmp_path: Path, of: DriftedObject, line: str) -> None:
    actor = actor_in_log(tmp_path, line, of=of)

    assert actor == Actor("oidc~mallory", LATER, "lakekeeper audit log", is_allowed_only=True)


PROJECT = create_drifted_object(f"{LAKEKEEPER}Project", "p1", "name")
TABLE = create_drifted_object(
    f"{LAKEKEEPER}Table", "t", "columns", warehouse_id=WAREHOUSE, namespace="sales.eu", name="orders"
)
RENAMED = create_drifted_object(
    f"{LAKEKEEPER}Table", "t", "name", warehouse_id=WAREHOUSE, namespace="sales.eu", name="orders"
)
COMMIT = f"/catalog/v1/{WAREHOUSE}/transactions/commit"
RENAME = f"/catalog/v1/{WAREHOUSE}/tables/rename"


def entity(kind: str, **fields: str) -> dict[str, str]:
    """Return an object as an audit event names it."""
    return {"entity_type": kind, **{key.replace("_", "-"): value for key, value in fields.items()}}


ORDERS = entity("table", warehouse_id=WAREHOUSE, namespace="sales.eu", table="orders")
OTHERS = entity("table", warehouse_id=WAREHOUSE, namespace="sales.eu", table="others")


def grant_on(kind: str, **target: str) -> DriftedObject:
    on = {"type": kind, **target}
    of = create_drifted_object(f"{LAKEKEEPER}Grant", "g", "", on=on)
    return replace(of, target_id="o1" if kind in ("namespace", "table") else "")


@pytest.mark.parametrize(
    ("of", "uri", "entities"),
    [
        (
            PROJECT,
            "project/rename",
            {"entity": entity("project", project_id="p1")},
        ),
        (PROJECT, "project/p1/rename", {}),
        (RENAMED, RENAME, {"entity": ORDERS}),
        (TABLE, COMMIT, {"entity": ORDERS}),
        (TABLE, COMMIT, {"entity": None, "entities": [OTHERS, ORDERS]}),
        (
            create_drifted_object(
                f"{LAKEKEEPER}TaskQueueConfig", "q", "config", warehouse_id=WAREHOUSE, queue="soft_deletion"
            ),
            f"warehouse/{WAREHOUSE}/task-queue/tabular_expiration/config",
            {},
        ),
        (
            create_drifted_object(
                f"{LAKEKEEPER}TaskQueueConfig", "q", "config", project_id="p1", queue="task_log_cleanup"
            ),
            "project/task-queue/task_log_cleanup/config",
            {"entity": entity("project", project_id="p1")},
        ),
        (
            grant_on("table", warehouse_id=WAREHOUSE, namespace="sales", name="orders"),
            f"permissions/warehouse/{WAREHOUSE}/table/o1/assignments",
            {},
        ),
        (grant_on("namespace", warehouse_id=WAREHOUSE, namespace="sales"), "permissions/namespace/o1/assignments", {}),
        (
            grant_on("table", warehouse_id=WAREHOUSE, namespace="sales", name="orders"),
            f"warehouse/{WAREHOUSE}/table/o1/grants",
            {},
        ),
        (grant_on("warehouse", warehouse_id=WAREHOUSE), f"warehouse/{WAREHOUSE}/grants", {}),
        (grant_on("project", project_id="p1"), "project/grants", {"entity": entity("project", project_id="p1")}),
        (grant_on("role", role_id="r1"), "permissions/role/r1/assignments", {}),
    ],
)
def test_requests_without_the_object_in_their_path(
    tmp_path: Path, of: DriftedObject, uri: str, entities: dict[str, Any]
) -> None:
    path = uri if uri.startswith("/") else f"/management/v1/{uri}"

    actor = actor_in_log(tmp_path, audit_event("POST", path, **entities), of=of)

    assert actor is not None
    assert actor.describe() == "allowed for oidc~mallory"


@pytest.mark.parametrize(
    ("of", "uri", "other"),
    [
        (PROJECT, "project/rename", entity("project", project_id="p2")),
        (RENAMED, RENAME, OTHERS),
        (TABLE, COMMIT, OTHERS),
    ],
)
def test_requests_for_other_objects_name_nobody(
    tmp_path: Path, of: DriftedObject, uri: str, other: dict[str, str]
) -> None:
    path = uri if uri.startswith("/") else f"/management/v1/{uri}"

    assert actor_in_log(tmp_path, audit_event("POST", path, entity=other), of=of) is None


@pytest.mark.parametrize(
    ("kind", "region", "expected"),
    [
        ("aws:iam/role:Role", "eu-west-1", "us-east-1"),
        ("aws:iam/role:Role", "us-gov-east-1", "us-gov-west-1"),
        ("aws:iam/rolePolicy:RolePolicy", "cn-northwest-1", "cn-north-1"),
        ("aws:s3/bucket:Bucket", "us-gov-east-1", "us-gov-east-1"),
    ],
)
def test_events_of_iam_are_in_one_region_of_a_partition(kind: str, region: str, expected: str) -> None:
    assert find_region(create_drifted_object(kind, "a", "tags"), AwsAccess(region=region)) == expected


@pytest.mark.parametrize("wrapped", [True, False])
def test_cloud_events_name_who_changed_a_table(tmp_path: Path, wrapped: bool) -> None:  # noqa: FBT001
    event = {
        "specversion": "1.0",
        "id": "019aabdf-2c00-7000-8000-000000000000",
        "type": "updateTable",
        "source": "uri:iceberg-catalog-service:host",
        "warehouse-id": WAREHOUSE,
        "namespace": "sales.eu",
        "name": "orders",
        "actor": json.dumps({"type": "principal", "principal": "oidc~mallory"}),
    }
    entry = {"timestamp": LATER, "message": "CloudEvent", "event": json.dumps(event)} if wrapped else event
    of = create_drifted_object(
        f"{LAKEKEEPER}Table", "t", "properties.a", warehouse_id=WAREHOUSE, namespace="sales.eu", name="orders"
    )

    actor = actor_in_log(tmp_path, json.dumps(entry) + "\n", of=of)

    if wrapped:
        assert actor == Actor("oidc~mallory", LATER, "lakekeeper cloud event")
    else:
        assert actor is None  # the time in its id is before the last update


def test_rotated_logs_are_read(tmp_path: Path) -> None:
    (tmp_path / "lakekeeper.1.log.gz").write_bytes(gzip.compress(audit_event("POST", PROTECTION).encode()))
    (tmp_path / "lakekeeper.2.log").write_text("")

    actors = [*LakekeeperLogSource(tmp_path / "lakekeeper.*").actors([PROTECTED])]

    assert [actor.name for _, actor in actors] == ["oidc~mallory"]


def test_missing_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AuditSourceError, match="there is no log of Lakekeeper"):
        list(LakekeeperLogSource(tmp_path / "none.log").actors([PROTECTED]))


def cloudtrail_event(name: str, parameters: dict[str, str], **changes: Any) -> dict[str, Any]:
    return {
        "eventTime": "2026-11-22T12:00:07Z",
        "eventName": name,
        "userIdentity": {"type": "IAMUser", "arn": "arn:aws:iam::111122223333:user/mallory"},
        "requestParameters": parameters,
    } | changes


TAGS = create_drifted_object("aws:s3/bucket:Bucket", "acme-lake", "tags.team")


@pytest.mark.parametrize(
    ("of", "event", "expected"),
    [
        (TAGS, cloudtrail_event("PutBucketTagging", {"bucketName": "acme-lake"}), True),
        (TAGS, cloudtrail_event("PutBucketTagging", {"bucketName": "other-lake"}), False),
        (TAGS, cloudtrail_event("PutBucketPolicy", {"bucketName": "acme-lake"}), False),
        (TAGS, cloudtrail_event("PutBucketTagging", {"bucketName": "acme-lake"}, errorCode="AccessDenied"), False),
        (
            create_drifted_object("aws:iam/rolePolicy:RolePolicy", "acme-role:rights", ""),
            cloudtrail_event("DeleteRolePolicy", {"roleName": "acme-role", "policyName": "rights"}),
            True,
        ),
        (
            create_drifted_object("aws:iam/rolePolicy:RolePolicy", "acme-role:rights", ""),
            cloudtrail_event("DeleteRolePolicy", {"roleName": "acme-role", "policyName": "others"}),
            False,
        ),
        (
            create_drifted_object("aws:kms/key:Key", "1234", "enableKeyRotation"),
            cloudtrail_event("DisableKeyRotation", {"keyId": "arn:aws:kms:eu-west-1:111122223333:key/1234"}),
            True,
        ),
    ],
)
def test_cloudtrail_events_of_this_change(of: DriftedObject, event: dict[str, Any], expected: bool) -> None:  # noqa: FBT001
    assert is_cause(event, of) is expected
    assert read_actor(event) == Actor("arn:aws:iam::111122223333:user/mallory", "2026-11-22T12:00:07Z", "cloudtrail")


def test_second_of_the_update_itself_names_nobody() -> None:
    """Records of whole seconds may be of the update itself."""
    same, later = (Actor("a", f"2026-11-22T12:00:0{second}Z", "cloudtrail") for second in (0, 1))

    assert (choose_actor([same], UPDATED), choose_actor([same, later], UPDATED)) == (None, later)


def create_field_manager(
    manager: str, fields: dict[str, Any], at: str | None = "2026-11-22T12:00:07Z"
) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": fields} | ({"time": at} if at else {})


def actor_of_live(path: str, *entries: dict[str, Any]) -> Actor | None:
    """Return the actor of a field of a Deployment with two containers."""
    of = create_drifted_object("kubernetes:apps/v1:Deployment", "acme/unit", path).resource
    of.state.outputs = {"__fieldManager": "pulumi-kubernetes-1234"}
    containers = [{"name": "other", "image": "x"}, {"name": "main", "image": "y"}]
    live = {"metadata": {"managedFields": [*entries]}, "spec": {"replicas": 3, "containers": containers}}
    return actor_of_field(
        of, ObjectRead(ResourceState(of.state.urn, of.state.type, custom=True, outputs=live), "update"), path
    )


REPLICAS: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
IMAGE: dict[str, Any] = {"f:spec": {"f:containers": {'k:{"name":"main"}': {"f:image": {}}}}}


@pytest.mark.parametrize(
    ("path", "entries", "name"),
    [
        ("spec.replicas", [create_field_manager("kubectl-edit", REPLICAS)], "kubectl-edit"),
        ("spec.containers[1].image", [create_field_manager("kubectl-edit", IMAGE)], "kubectl-edit"),
        ("spec.containers[0].image", [create_field_manager("kubectl-edit", IMAGE)], None),
        ("spec.replicas", [create_field_manager("kubectl-edit", IMAGE)], None),
        ("spec.replicas", [create_field_manager("pulumi-kubernetes-1234", REPLICAS)], None),
        (
            "spec.replicas",
            [create_field_manager("kubectl-edit", REPLICAS), create_field_manager("pulumi-kubernetes-1234", REPLICAS)],
            None,
        ),
        ("spec.replicas", [create_field_manager("kubectl-edit", REPLICAS, "2026-11-22T11:59:59Z")], None),
        ("spec.replicas", [create_field_manager("kubectl-edit", REPLICAS, None)], None),
    ],
)
def test_field_managers_of_this_field(path: str, entries: list[dict[str, Any]], name: str | None) -> None:
    actor = actor_of_live(path, *entries)

    assert (actor.name if actor else None) == name
