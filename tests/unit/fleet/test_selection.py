"""Which stacks of a project an operation on many runs on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lakewright.fleet.selection import Selection, SelectionError, parse_labels, select
from lakewright.validation.problems import SpecError
from lakewright_engine.project.project import PulumiProject

STACKS = {
    "team-a": "labels: {cost-center: 4711, tier: gold}",
    "team-b": "labels: {cost-center: '4711'}",
    "other": "environment: prod",
}


@pytest.fixture
def project(tmp_path: Path) -> PulumiProject:
    (tmp_path / "Pulumi.yaml").write_text("name: fleet\nruntime: python\nstackConfigDir: tenants\n")
    (tmp_path / "tenants").mkdir()
    for name, line in STACKS.items():
        text = f"config:\n  lakewright:tenant:\n    name: {name}\n    {line}\n"
        (tmp_path / "tenants" / f"Pulumi.{name}.yaml").write_text(text)
    return PulumiProject.load(tmp_path)


@pytest.mark.parametrize(
    ("patterns", "labels", "expected"),
    [
        ([], [], ["other", "team-a", "team-b"]),
        (["team-*"], [], ["team-a", "team-b"]),
        (["other", "team-a"], [], ["other", "team-a"]),
        (["team-[!a]"], [], ["team-b"]),
        ([], ["cost-center=4711"], ["team-a", "team-b"]),
        ([], ["cost-center=47*", "tier"], ["team-a"]),
        (["*-b"], ["cost-center"], ["team-b"]),
    ],
)
def test_patterns_and_labels_select(
    project: PulumiProject, patterns: list[str], labels: list[str], expected: list[str]
) -> None:
    selected = select(project, Selection(tuple(patterns), parse_labels(labels)))

    assert [stack.name for stack in selected] == expected


@pytest.mark.parametrize(
    ("patterns", "labels", "message"),
    [
        (["team-*", "nobody"], [], "--stack 'nobody' matches none of the 3 stacks"),
        ([], ["tier=silver"], "no stack matches --label tier=silver"),
        ([], ["=x"], "expected NAME=VALUE"),
        ([], ["tier=gold", "tier=silver"], "given twice"),
    ],
)
def test_filters_that_select_nothing_are_refused(
    project: PulumiProject, patterns: list[str], labels: list[str], message: str
) -> None:
    with pytest.raises(SelectionError, match=message.replace("*", r"\*")):
        select(project, Selection(tuple(patterns), parse_labels(labels)))


def test_stacks_of_the_backend_need_no_file(project: PulumiProject) -> None:
    selected = select(project, Selection(("or*",)), names=["orphan", "team-a"])

    assert [(stack.name, stack.tenant) for stack in selected] == [("orphan", "")]


def test_a_damaged_file_hides_no_other_stack(project: PulumiProject) -> None:
    (project.stack_config_dir / "Pulumi.team-b.yaml").write_text("config: [")

    selected = select(project, Selection())

    assert [(stack.name, stack.environment) for stack in selected] == [
        ("other", "prod"),
        ("team-a", ""),
        ("team-b", ""),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("config: [", "Pulumi.team-b.yaml:1:10: expected YAML"),
        ("- config", "expected a mapping (found a list)"),
        ("config: [a]", "config: expected a mapping (found a list)"),
        ("config: {lakewright:tenant: team-b}", "config.lakewright:tenant: expected a mapping (found a str)"),
        ("config: {lakewright:tenant: {name: team-b, extends: base}}", "extends: expected NAME of a file defaults/"),
    ],
    ids=["no YAML", "list", "list of settings", "text", "no defaults"],
)
def test_unreadable_stack_is_named_without_labels(
    project: PulumiProject, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    (project.stack_config_dir / "Pulumi.team-b.yaml").write_text(text)

    labeled = select(project, Selection(("team-*",), {"cost-center": "4711"}))

    warning = capsys.readouterr().err
    assert [stack.name for stack in labeled] == ["team-a"]
    assert warning.startswith("warning: --label: stack team-b is left out, as its labels cannot be read: ")
    assert (warning.count("\n"), reason in warning) == (1, True)
    (unreadable,) = select(project, Selection(("team-b",)))
    with pytest.raises(SpecError, match=re.escape(reason)):
        unreadable.require_spec()


def test_stack_is_named_only_if_labels_decide(project: PulumiProject, capsys: pytest.CaptureFixture[str]) -> None:
    """A stack that the patterns leave out, or whose own labels match, has no warning."""
    spec = "{extends: base, labels: {tier: gold}}"
    (project.stack_config_dir / "Pulumi.team-b.yaml").write_text(f"config: {{lakewright:tenant: {spec}}}")
    (project.stack_config_dir / "Pulumi.other.yaml").write_text("config: [")

    selected = select(project, Selection(("team-*",), {"tier": "gold"}))

    assert [stack.name for stack in selected] == ["team-a", "team-b"]
    assert capsys.readouterr().err == ""


def test_stack_file_without_spec_is_no_error(project: PulumiProject) -> None:
    (project.stack_config_dir / "Pulumi.team-b.yaml").write_text("encryptionsalt: v1:x\n")

    (stack,) = select(project, Selection(("team-b",)))

    assert stack.require_spec() == {}
