"""Stacks whose file, or a file that it extends, cannot be read: no command leaves them out without a problem."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from lakewright.cli import main
from lakewright.costs.archive_collection import record_archives
from lakewright.costs.compute_collection import record_compute
from lakewright.drift.detection.run import find_drift
from lakewright.fleet.selection import SelectedStack, Selection, select
from lakewright.fleet.spark_reports import SparkReport
from lakewright.fleet.states import StackState
from lakewright.shares.expiry import compute_exit_code, expire_shares
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.project.project import PulumiProject

from tests.tenant_project import create_project

FILES = {
    "damaged": "config: [",
    "heir": "config: {lakewright:tenant: {name: heir, environment: sandbox, extends: base}}",
    "valid": "config: {lakewright:tenant: {name: valid, environment: sandbox}}",
}
REASONS = {
    "damaged": "Pulumi.damaged.yaml:1:10: expected YAML",
    "heir": "extends: expected NAME of a file defaults/NAME.yaml",
}
RECORD = "pulumi-python:dynamic/lakekeeper:TenantRecord"
NAMESPACE = "kubernetes:core/v1:Namespace"
PROVIDER = "pulumi:providers:kubernetes"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PulumiProject:
    """A project with a damaged stack file, a spec that extends an absent file, and a valid spec without checks."""
    folder = tmp_path / "lake"
    create_project(folder, {"lakekeeper": {"url": "http://127.0.0.1:9"}})
    for stack, text in FILES.items():
        (folder / "tenants" / f"Pulumi.{stack}.yaml").write_text(text)
    monkeypatch.setenv("PULUMI_BACKEND_URL", (folder / "state").as_uri())
    monkeypatch.chdir(folder)
    return PulumiProject.load(folder)


class States:
    """States of stacks that all have these resources."""

    def __init__(self, *resources: tuple[str, dict[str, Any], dict[str, Any]]) -> None:
        """Take type, inputs and outputs of each resource."""
        self._resources = resources

    def names(self) -> list[str]:
        return [*FILES]

    def read(self, stack: str) -> StackState:
        urns = {type_: f"urn:pulumi:{stack}::lakewright::{type_}::lake" for type_, *_ in self._resources}
        provider = f"{urns[PROVIDER]}::1" if PROVIDER in urns else ""
        resources = [
            ResourceState(
                urns[type_],
                type_,
                custom=True,
                id="1",
                inputs=inputs,
                outputs=outputs,
                provider=provider if type_ == NAMESPACE else "",
            )
            for type_, inputs, outputs in self._resources
        ]
        return StackState(stack, resources)


def refuse_to_record(_command: Sequence[str], _stacks: Sequence[SelectedStack]) -> Sequence[SparkReport]:
    raise AssertionError("nothing was measured")


def assert_reported(problems: dict[str, str]) -> None:
    """Check that both stacks have one problem, on one line, with the reason."""
    assert problems.keys() == REASONS.keys()
    for stack, reason in REASONS.items():
        assert reason in problems[stack]
        assert "\n" not in problems[stack]


@pytest.mark.parametrize("selection", [["--all"], ["--stack", "damaged"], ["--stack", "heir"]])
def test_check_fails_for_unreadable_specs(
    project: PulumiProject, capsys: pytest.CaptureFixture[str], selection: list[str]
) -> None:
    """The checks may be among the values that cannot be read."""
    with pytest.raises(SystemExit) as end:
        main(["check", "-C", str(project.root), *selection])

    output = capsys.readouterr().out
    assert end.value.code == 1
    for stack in REASONS if selection == ["--all"] else selection[1:]:
        assert f"error: {stack}: not evaluated: " in output
        assert REASONS[stack] in output


def test_drift_fails_for_unreadable_specs(project: PulumiProject) -> None:
    report = find_drift(project, select(project, Selection()), reader=States())

    problems = {stack.stack: stack.problems for stack in report.stacks}
    assert problems.pop("valid") == []
    assert_reported({stack: "\n".join(texts) for stack, texts in problems.items()})
    assert report.exit_code == 1


def test_hours_of_unreadable_specs_are_a_problem(project: PulumiProject) -> None:
    """The warehouse of a unit's hours is in the spec. A valid spec without units is no problem, as before."""
    states = States(
        (PROVIDER, {"renderYamlToDirectory": "rendered"}, {}), (NAMESPACE, {"metadata": {"name": "tenant-lake"}}, {})
    )

    computes = record_compute(project, select(project, Selection()), refuse_to_record, reader=states)

    assert_reported({compute.stack.name: compute.problem for compute in computes})


def test_archives_of_unreadable_specs_are_a_problem(project: PulumiProject) -> None:
    """Server and project of the archives are in the spec."""
    stacks, states = select(project, Selection(("damaged", "heir"))), States((RECORD, {}, {"kept": [{"bucket": "a"}]}))

    expiries = expire_shares(project, stacks, reader=states)

    assert_reported({expiry.stack: "\n".join(expiry.problems) for expiry in expiries})
    assert compute_exit_code(expiries) == 1
    archives = record_archives(project, stacks, refuse_to_record, reader=states)
    assert all(REASONS[entry.stack.name] in entry.problem for entry in archives)


def test_archives_without_a_spec_are_a_problem(project: PulumiProject) -> None:
    project.stack_file("damaged").write_text("encryptionsalt: v1:x\n")
    stacks = select(project, Selection(("damaged",)))

    (unlisted,) = expire_shares(project, stacks, reader=States((RECORD, {}, {"kept": [{"bucket": "a"}]})))
    (untouched,) = expire_shares(project, stacks, reader=States())

    assert "its stack file has no spec with `name` and `environment`" in unlisted.problems[0]
    assert untouched.problems == []
