"""Objects that remain although their resources leave a stack, and how a run reports them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lakewright.deletions.retention import StateEntry, is_retained
from lakewright.deletions.retention_report import RetentionReportingEngine
from lakewright_engine import Operation, Result
from lakewright_engine.display.report import OperationReport
from lakewright_engine.project.project import PulumiProject
from pulumi.automation.events import EngineEvent

DYNAMIC = "pulumi-python:dynamic/lakekeeper:"
PARENT = "urn:pulumi:acme::lake::lakewright:index:TenantBucket::acme-main"
RECORD: dict[str, Any] = {
    "buckets": {"main": {"bucket": "lake"}},
    "warehouses": {"w": {"bucket": "lake", "deletion": "retain"}},
}


def entry(kind: str, name: str = "acme", *, keeps: bool = False, **properties: Any) -> StateEntry:
    type_ = kind if ":" in kind else f"{DYNAMIC}{kind}"
    is_custom = not type_.startswith("lakewright:")
    return StateEntry(f"urn:pulumi:acme::lake::{type_}::{name}", type_, PARENT, is_custom, keeps, properties)


BUCKET = entry("aws:s3/bucket:Bucket", keeps=True, bucket="lake")
POLICY = entry("aws:s3/bucketPolicy:BucketPolicy", keeps=True, bucket="lake")
KEY = entry("aws:kms/key:Key", "acme-main-lake", keeps=True)
COMPONENT = StateEntry(PARENT, "lakewright:index:TenantBucket", is_custom=False)
DELETED = entry("BucketRemoval", bucket="lake", kept=[])
KEPT = entry("BucketRemoval", bucket="lake", kept=["w"])
KEY_WITH_ID = entry("aws:kms/key:Key", "acme-main-lake", keeps=True, keyId="k")
ALIAS = entry("aws:kms/alias:Alias", "acme-main-lake", keeps=True, targetKeyId="k")
KEY_REMOVAL = entry("KeyRemoval", bucket="lake", key_id="k")


@pytest.mark.parametrize("deleted", [BUCKET, POLICY, KEY, KEY_REMOVAL, COMPONENT])
def test_removals_delete_what_the_engine_retains(deleted: StateEntry) -> None:
    """Buckets and keys always have `retain_on_delete`; only retained data keeps them."""
    entries = [BUCKET, POLICY, KEY, KEY_REMOVAL]

    assert not is_retained(deleted, [*entries, DELETED])
    assert is_retained(deleted, [*entries, KEPT])


def test_record_knows_buckets_without_a_removal() -> None:
    """An interrupted `destroy` has deleted the removal already."""
    purged: dict[str, Any] = RECORD | {"warehouses": {"w": {"bucket": "lake", "deletion": "purge"}}}
    partly_retained: dict[str, Any] = purged | {"kept": [{"bucket": "lake", "deletion": "retain"}]}

    assert not is_retained(BUCKET, [entry("TenantRecord", **purged)])
    assert is_retained(BUCKET, [entry("TenantRecord", **RECORD)])
    assert is_retained(KEY, [entry("TenantRecord", **partly_retained)])


@pytest.mark.parametrize(
    ("removed", "expected"),
    [
        (entry("Warehouse", keeps=True, deletion="retain"), True),
        (entry("Warehouse", deletion="purge"), False),
        (entry("Namespace", deletion="retain"), True),
        (entry("Project", kept_warehouses=["w"]), True),
        (entry("Project", kept_warehouses=[]), False),
        (entry("StoreBucket", kept=["w"]), True),
        (entry("StoreBucket", kept=[]), False),
        (entry("DeletionGuard", deletion="protect"), False),
        (entry("aws:iam/role:Role", keeps=True), True),
        (entry("aws:iam/role:Role"), False),
        (entry("aws:s3/bucket:Bucket", "acme-logs", keeps=True, bucket="logs"), True),
        (entry("aws:s3/bucketLogging:BucketLogging", bucket="lake"), False),
    ],
)
def test_objects_remain_by_their_own_settings(removed: StateEntry, *, expected: bool) -> None:
    assert is_retained(removed, [removed, DELETED]) is expected


class EventsOfDestroy:
    """An engine that sends the events of a destroy."""

    def run(self, _operation: Operation, on_event: Any, /) -> Result:
        for op, name, retains in (("delete", "kept", True), ("delete", "purged", False), ("refresh", "gone", True)):
            urn = f"urn:pulumi:acme::lake::aws:iam/role:Role::{name}"
            old = {"urn": urn, "type": "aws:iam/role:Role", "custom": True, "retainOnDelete": retains, "inputs": {}}
            metadata = {"op": op, "urn": urn, "type": old["type"], "provider": "", "old": old, "new": None}
            send(on_event, "resourcePreEvent", {"metadata": metadata})
            send(on_event, "resOutputsEvent", {"metadata": metadata | {"op": "delete"}})
        counts = {"delete": 3, "same": 1}
        send(on_event, "summaryEvent", {"maybeCorrupt": False, "durationSeconds": 1, "resourceChanges": counts})
        return Result(0, changes=dict(counts))


def send(on_event: Any, kind: str, body: dict[str, Any]) -> None:
    message: Any = {"sequence": 0, "timestamp": 0, kind: body}
    on_event(EngineEvent.from_json(message))


def test_steps_and_counts_say_what_is_retained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", tmp_path.as_uri())
    report = OperationReport()
    project = PulumiProject(tmp_path / "Pulumi.yaml", "lake")

    result = RetentionReportingEngine(EventsOfDestroy()).run(Operation("destroy", project, "acme"), report.take)

    assert [(step.name, step.effect, step.done) for step in report.steps] == [
        ("kept", "retain", True),
        ("purged", "delete", True),
        ("gone", "delete", True),
    ]
    assert result.changes == report.changes == {"retain": 1, "delete": 2, "same": 1}


@dataclass(frozen=True)
class EventsOfKeyRemoval:
    """An engine that sends the events of a run which removes a key, with or without its bucket."""

    leaving: list[StateEntry]

    def run(self, _operation: Operation, on_event: Any, /) -> Result:
        for entry in self.leaving:
            old = {"urn": entry.urn, "type": entry.type, "custom": True, "retainOnDelete": entry.has_retain_option}
            old |= {"inputs": {}, "outputs": dict(entry.properties)}
            metadata = {"op": "delete", "urn": entry.urn, "type": entry.type, "provider": "", "old": old, "new": None}
            send(on_event, "resourcePreEvent", {"metadata": metadata})
            send(on_event, "resOutputsEvent", {"metadata": metadata})
        return Result(0, changes={"delete": len(self.leaving)})


@pytest.mark.parametrize(
    ("leaving", "expected"),
    [
        ([KEY_REMOVAL, KEY_WITH_ID, ALIAS], {"retain": 3}),
        ([DELETED, KEY_REMOVAL, KEY_WITH_ID, ALIAS], {"delete": 4}),
    ],
)
def test_key_in_use_is_retained_with_its_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leaving: list[StateEntry], expected: dict[str, int]
) -> None:
    """A key whose bucket stays is kept while objects are encrypted with it."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", tmp_path.as_uri())
    report, project = OperationReport(), PulumiProject(tmp_path / "Pulumi.yaml", "lake")
    engine = RetentionReportingEngine(EventsOfKeyRemoval(leaving), lambda _, properties: properties["key_id"] == "k")

    result = engine.run(Operation("up", project, "acme"), report.take)

    assert result.changes == expected
    assert {step.effect for step in report.steps} == expected.keys()
