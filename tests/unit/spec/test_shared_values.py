"""Specs that extend files of defaults/: how values merge, where mistakes are, and what `explain` and `--accept` say."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from lakewright.drift.acceptance.accept import accept
from lakewright.drift.model import Difference, DifferenceKind
from lakewright.environment.stack_config import read_stack_config
from lakewright.environment.stack_file_check import check_stack_file
from lakewright.project_files.project_root import project_root
from lakewright.project_files.shared_values import find_place, merge_defaults, read_merged_spec
from lakewright.project_files.stack_files import SPEC_SECTIONS, raw_spec
from lakewright.spec import SpecError, parse_spec, read_stack_file
from lakewright_engine.project.project import PulumiProject

BASE = """\
version: 1
owner: platform
environment: test
storage:
  main: {backend: aws, bucket: lake, region: us-west-2, encryption: {kms: own}}
labels: {team: data, tier: gold}
policies:
  - {match: "*.*.*", history: {max_age_days: 3}}
"""
SPEC: dict[str, Any] = {"extends": "base", "name": "acme", "warehouses": [{"name": "executions"}]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a file of defaults."""
    (tmp_path / "Pulumi.yaml").write_text("name: lake\nruntime: python\n")
    for folder in ("tenants", "defaults", "environments"):
        (tmp_path / folder).mkdir()
    (tmp_path / "defaults" / "base.yaml").write_text(BASE)
    return tmp_path


def write_spec(project: Path, **changes: Any) -> Path:
    file = project / "tenants" / "Pulumi.acme.yaml"
    file.write_text(yaml.safe_dump({"config": {"lakewright:tenant": SPEC | changes}}, sort_keys=False))
    return file


def write_defaults(project: Path, **documents: Any) -> None:
    for name, document in documents.items():
        (project / "defaults" / f"{name}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))


def merge(project: Path, **changes: Any) -> dict[str, Any]:
    return dict(merge_defaults(SPEC | changes, project / "defaults", "the test").document)


def find_mistake(file: Path) -> str:
    """Return the only mistake of a stack file, with its position relative to the project."""
    with pytest.raises(SpecError) as caught:
        read_stack_file(file)
    [problem] = caught.value.problems
    return f"{problem.position}: {problem}".replace(f"{file.parents[1]}/", "")


def test_mappings_merge_and_other_values_replace(project: Path) -> None:
    policies = [{"match": "*.results.*", "history": {"max_age_days": 1}}]

    merged = merge(project, labels={"tier": "silver", "site": "eu"}, policies=policies, owner="acme")

    assert merged["labels"] == {"team": "data", "tier": "silver", "site": "eu"}
    assert (merged["policies"], merged["owner"], merged["environment"]) == (policies, "acme", "test")
    assert "extends" not in merged


def test_null_removes_an_inherited_key(project: Path) -> None:
    merged = merge(project, labels={"tier": None}, storage={"main": {"encryption": None}})

    assert merged["labels"] == {"team": "data"}
    assert merged["storage"]["main"] == {"backend": "aws", "bucket": "lake", "region": "us-west-2"}


def test_later_names_override_earlier_names_and_what_they_extend(project: Path) -> None:
    write_defaults(
        project,
        small={"extends": "base", "owner": "small", "labels": {"tier": "none"}},
        audited={"labels": {"audit": "yes", "tier": "audited"}},
    )

    merged = merge(project, extends=["small", "audited"])

    assert (merged["owner"], merged["labels"]) == ("small", {"team": "data", "tier": "audited", "audit": "yes"})


def test_file_may_be_reached_by_two_ways(project: Path) -> None:
    write_defaults(project, a={"extends": "base"}, b={"extends": "base", "owner": "b"})

    assert merge(project, extends=["b", "a"])["owner"] == "platform"


def test_spec_without_extends_is_not_changed(project: Path) -> None:
    document = {"name": "acme", "labels": {"a": None}}

    assert merge_defaults(document, project / "defaults", "the test").document is document


def test_every_reader_has_the_inherited_values(project: Path) -> None:
    file = write_spec(project)

    assert read_stack_file(file).labels == {"team": "data", "tier": "gold"}
    assert raw_spec(file)["labels"] == {"team": "data", "tier": "gold"}
    (project / "environments" / "test.yaml").write_text(
        "lakekeeper: {endpoint: 'https://lakekeeper.example',"
        " principal_arn: 'arn:aws:iam::123456789012:role/lakekeeper'}\n"
    )
    assert check_stack_file(file, project, {}).spec.owner == "platform"
    environments = project / "environments"
    spec, _ = read_stack_config(dict(SPEC), source="program", environments=environments, environ={}, region=None)
    assert spec.storage["main"].bucket == "lake"


@pytest.mark.parametrize("folder_kind", ["linked", "outside"])
def test_defaults_are_in_the_project_of_a_stack_folder(
    project: Path, tmp_path_factory: pytest.TempPathFactory, folder_kind: str
) -> None:
    stacks = tmp_path_factory.mktemp("stacks")
    write_spec(project).rename(stacks / "Pulumi.acme.yaml")
    (project / "tenants").rmdir()
    if folder_kind == "linked":
        (project / "tenants").symlink_to(stacks)
    folder = "tenants" if folder_kind == "linked" else os.path.relpath(stacks, project)
    (project / "Pulumi.yaml").write_text(f"name: lake\nruntime: python\nstackConfigDir: {folder}\n")

    file = PulumiProject.load(project).stack_file("acme")

    assert read_stack_file(file).owner == "platform"
    assert raw_spec(file)["owner"] == "platform"
    assert read_merged_spec(file, *SPEC_SECTIONS).origins


def test_project_file_may_be_named_yml(project: Path) -> None:
    file = write_spec(project)
    (project / "Pulumi.yaml").rename(project / "Pulumi.yml")

    assert read_stack_file(file).owner == "platform"
    assert project_root(file.parent) == project


@pytest.mark.parametrize(
    ("defaults", "extends", "mistake"),
    [
        ({}, "bass", "tenants/Pulumi.acme.yaml:3:5: extends: expected NAME of a file defaults/NAME.yaml; the folder"),
        ({}, ["base", 1], "tenants/Pulumi.acme.yaml:5:7: extends.1: expected the NAME of a file defaults/NAME.yaml"),
        ({}, "../secrets", "tenants/Pulumi.acme.yaml:3:5: extends: expected the NAME of a file defaults/NAME.yaml"),
        ({"a": {"owner": "x", "extends": ["base", "gone"]}}, "a", "defaults/a.yaml:4:3: extends.1: expected NAME of"),
        (
            {"a": {"extends": "b"}, "b": {"labels": {}, "extends": ["a"]}},
            "a",
            "defaults/b.yaml:3:3: extends.0: expected no cycle; a extends b extends a",
        ),
        ({"a": {"extends": "a"}}, "a", "defaults/a.yaml:1:1: extends: expected no cycle; a extends a"),
        ({"a": {"name": "acme"}}, "a", "defaults/a.yaml:1:1: name: expected no `name` in defaults/"),
        ({"a": ["base"]}, "a", "expected a mapping with parts of a spec"),
        ({"a": {"labels": {"team": "?"}}}, ["base", "a"], "defaults/a.yaml:2:3: labels.team: expected up to 63"),
        ({"a": {"labels": {}, "color": 1}}, ["base", "a"], "defaults/a.yaml:2:1: color: unknown key"),
    ],
)
def test_mistake_has_path_and_line_in_its_file(project: Path, defaults: Any, extends: Any, mistake: str) -> None:
    write_defaults(project, **defaults)

    assert mistake in find_mistake(write_spec(project, extends=extends))


def test_repeated_key_is_refused(project: Path) -> None:
    (project / "defaults" / "base.yaml").write_text("owner: a\nowner: b\n")

    assert re.search(r"defaults/base.yaml:2:1: expected YAML: key 'owner' is set", find_mistake(write_spec(project)))


def test_unmerged_spec_is_refused() -> None:
    with pytest.raises(SpecError, match="expected the spec with its inherited values"):
        parse_spec(SPEC, "a program")


def test_places_of_values_are_files_and_lines(project: Path) -> None:
    merged = read_merged_spec(write_spec(project, labels={"tier": "silver"}), *SPEC_SECTIONS)

    paths = ("owner", "labels.team", "labels.tier", "policies.0.match", "warehouses.0.name", "storage.main.bucket")
    assert [find_place(merged, path) for path in paths] == [
        "defaults/base.yaml:2",
        "defaults/base.yaml:6",
        "",
        "defaults/base.yaml:8",
        "",
        "defaults/base.yaml:5",
    ]


def test_accept_changes_own_values_only(project: Path) -> None:
    grants = [{"to": f"user:oidc~{name}", "privilege": "select", "on": {"warehouse": "executions"}} for name in "ab"]
    write_defaults(project, shared={"extends": "base", "grants": grants})
    inherited, written = (
        write_spec(project, **changes).read_text() for changes in ({"extends": "shared"}, {"grants": grants})
    )
    name = "acme-user-oidc~a-select-warehouse-executions"
    kind = "pulumi-python:dynamic/lakekeeper:Grant"
    revoked = Difference("acme", "acme", "urn", kind, name, "", name, None, DifferenceKind.GONE)

    refused = accept([revoked], inherited, "acme.yaml", project / "defaults")
    accepted = accept([revoked], written, "acme.yaml", project / "defaults")

    assert refused.text == inherited
    assert "defaults/shared.yaml:3 sets `grants.0` for all specs that extend it" in refused.refused[0][1]
    assert "oidc~a" not in accepted.text
    assert "oidc~b" in accepted.text
