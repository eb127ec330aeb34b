"""Differences written into a stack file: the right place, comments kept, and refused where the spec has no word."""

from __future__ import annotations

from typing import Any, Final

import pytest
import yaml
from lakewright.drift.acceptance.accept import accept
from lakewright.drift.model import Difference, DifferenceKind

YES: Final = True
LAKEKEEPER = "pulumi-python:dynamic/lakekeeper:"
FILE = """\
encryptionsalt: v1:abc:def
config:
  lakewright:tenant:
    version: 1
    name: acme
    owner: you                      # the team
    environment: sandbox
    storage:
      main: {backend: aws, bucket: acme-lakehouse}
    warehouses:
      - name: executions            # bound
        namespaces: [results, curated]
        soft_delete_days: 7         # a week
        task_queues:
          tabular_purge: {config: {}}
      - {name: second, namespaces: [a], format_versions: [2]}
    role_members:
      analysts:
        users: [oidc~ann, oidc~ben] # people
      auditors:
        users: [{user: oidc~eve, until: 2040-06-30}, oidc~ann]
    grants:
      # readers
      - {to: "role:analysts", privilege: select, on: {warehouse: executions}}
      - to: user:oidc~zoe
        privilege: modify
        on: {warehouse: second, namespace: a}
    maintenance:
      schedule: "0 2 * * *"
      server:
        second: {expire_snapshots: {max-snapshot-age-ms: 1}}
    tables:
      - name: executions.results.runs
        columns:
          - {name: id, type: long}  # key
          - {name: note, type: string}
        properties:
          write.parquet.compression-codec: zstd
          owner: me
        policies: {orphan_files: {older_than_days: 9}}
"""


def difference(kind: str, name: str, path: str, live_value: Any, declared_value: Any = None) -> Difference:
    type_ = LAKEKEEPER + kind
    changed = DifferenceKind.GONE if live_value is None and not path else DifferenceKind.CHANGED
    return Difference("acme", "acme", f"urn::{name}", type_, name, path, declared_value, live_value, changed)


LONG, TEXT = {"name": "id", "type": "long", "required": False}, {"name": "note", "type": "string", "required": False}
CASES: list[tuple[Difference, str, str]] = [
    (
        difference("Warehouse", "acme-executions", "delete_profile.expiration_seconds", 14 * 86400),
        "soft_delete_days: 7         # a week",
        "soft_delete_days: 14         # a week",
    ),
    (
        difference("Warehouse", "acme-executions", "delete_profile", {"type": "hard"}),
        "        soft_delete_days: 7         # a week\n",
        "",
    ),
    (
        difference("Warehouse", "acme-second", "delete_profile", {"type": "soft", "expiration_seconds": 86400}),
        "format_versions: [2]}",
        "format_versions: [2], soft_delete_days: 1}",
    ),
    (
        difference("Warehouse", "acme-second", "protected", YES),
        "format_versions: [2]}",
        "format_versions: [2], protected: true}",
    ),
    (
        difference("Warehouse", "acme-second", "storage.sts_session_tags", {"team": "a"}),
        "format_versions: [2]}",
        "format_versions: [2], session_tags: {team: a}}",
    ),
    (difference("Warehouse", "acme-second", "allowed_format_versions", [2, 3]), "[2]}", "[2, 3]}"),
    (difference("Namespace", "acme-executions-curated", "", None), "[results, curated]", "[results]"),
    (
        difference("TaskQueueConfig", "acme-executions-tabular_purge", "config", {"x": 1}),
        "{config: {}}",
        "{config: {x: 1}}",
    ),
    (
        difference("RoleMembers", "acme-analysts", "users", ["oidc~ben", "oidc~eve"], ["oidc~ann", "oidc~ben"]),
        "[oidc~ann, oidc~ben] # people",
        "[oidc~ben, oidc~eve] # people",
    ),
    (
        difference("RoleMembers", "acme-auditors", "users", ["oidc~ann"], ["oidc~ann", "oidc~eve"]),
        "[{user: oidc~eve, until: 2040-06-30}, oidc~ann]",
        "[oidc~ann]",
    ),
    (
        difference("Grant", "acme-user-oidc~zoe-modify-namespace-second.a", "", None),
        "      - to: user:oidc~zoe\n        privilege: modify\n        on: {warehouse: second, namespace: a}\n",
        "",
    ),
    (
        difference("Table", "acme-executions.results.runs", "columns", [LONG, TEXT, {"name": "at", "type": "date"}]),
        "          - {name: note, type: string}\n",
        "          - {name: note, type: string}\n          - {name: at, type: date}\n",
    ),
    (
        difference("Table", "acme-executions.results.runs", "columns", [LONG, TEXT | {"doc": "why"}]),
        "{name: note, type: string}",
        "{name: note, type: string, doc: why}",
    ),
    (
        difference("Table", "acme-executions.results.runs", "columns", [LONG]),
        "          - {name: note, type: string}\n",
        "",
    ),
    (
        difference("Table", "acme-executions.results.runs", "properties", {"owner": "you"}, {"owner": "me"}),
        "          owner: me\n",
        "          owner: you\n",
    ),
    (
        difference("Table", "acme-executions.results.runs", "protected", YES),
        "        policies: {orphan_files: {older_than_days: 9}}\n",
        "        policies: {orphan_files: {older_than_days: 9}}\n        protected: true\n",
    ),
    (
        difference("Table", "acme-executions.results.runs", "sort_by", ["id asc"]),
        "        policies: {orphan_files: {older_than_days: 9}}\n",
        "        policies: {orphan_files: {older_than_days: 9}}\n        sort_by:\n        - id asc\n",
    ),
    (
        difference("Project", "acme", "name", "Acme Inc"),
        "          owner: me\n        policies: {orphan_files: {older_than_days: 9}}\n",
        "          owner: me\n        policies: {orphan_files: {older_than_days: 9}}\n    project:\n"
        "      name: Acme Inc\n",
    ),
]


@pytest.mark.parametrize(("drift", "old", "new"), CASES, ids=lambda value: getattr(value, "property", None))
def test_found_value_is_written_in_place(drift: Difference, old: str, new: str) -> None:
    result = accept([drift], FILE, "Pulumi.acme.yaml")

    assert result.refused == []
    assert result.text == FILE.replace(old, new)
    assert result.diff().startswith("--- Pulumi.acme.yaml")


@pytest.mark.parametrize(
    ("drift", "reason"),
    [
        (difference("Warehouse", "acme-executions", "delete_profile.expiration_seconds", 3600), "whole days"),
        (difference("Warehouse", "acme-executions", "name", "renamed"), "renamed_from"),
        (difference("Warehouse", "acme-executions", "active", not YES), "inactive"),
        (difference("Warehouse", "acme-executions", "credential_fingerprint", "[secret]"), "secret"),
        (difference("Warehouse", "acme-executions", "", None), "no longer exists"),
        (difference("Warehouse", "acme-second", "storage.sts_enabled", not YES), "`delegation` and `remote_signing`"),
        (difference("Warehouse", "acme-second", "managed_access", YES), "no field for `managed_access`"),
        (difference("Namespace", "acme-executions-results", "properties", {}), "names of namespaces"),
        (difference("Namespace", "acme-executions-results", "", None), "spec would be invalid: tables.0.name"),
        (difference("RoleMembers", "acme-analysts", "users", [], ["oidc~unit"]), "computing unit"),
        (difference("Grant", "acme-role-executions-reader-select-warehouse-executions", "", None), "standard_roles"),
        (difference("Table", "acme-executions.results.runs", "properties", {}, {"lakewright.x": "1"}), "policies"),
        (difference("User", "acme-unit", "name", "x"), "several fields"),
        (difference("Table", "acme-executions.results.runs", "columns", [{"name": "id", "type": "huge"}]), "invalid"),
    ],
    ids=lambda value: getattr(value, "property", None),
)
def test_what_the_spec_cannot_say_is_refused(drift: Difference, reason: str) -> None:
    result = accept([drift], FILE, "Pulumi.acme.yaml")

    [(refused, why)] = result.refused
    assert (refused, result.text) == (drift, FILE)
    assert reason in why


def test_several_differences_of_one_file() -> None:
    differences = [drift for drift, _, _ in CASES if drift.property not in ("columns", "delete_profile")]

    result = accept([*differences, difference("User", "u", "name", "x")], FILE, "Pulumi.acme.yaml")

    spec = yaml.safe_load(result.text)["config"]["lakewright:tenant"]
    assert (len(result.accepted), len(result.refused)) == (len(differences), 1)
    assert spec["warehouses"][1]["protected"] is True
    assert [grant["to"] for grant in spec["grants"]] == ["role:analysts"]
    assert "# people" in result.text
    assert "# the team" in result.text
