"""Stacks whose pods are read: rendered manifests name no cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from lakewright.costs.compute_collection import compute_exit_code, record_compute
from lakewright.fleet.selection import SelectedStack
from lakewright.fleet.spark_reports import SparkReport
from lakewright.fleet.states import StackState
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.project.project import PulumiProject

PROVIDER = "urn:pulumi:dev::lakewright::pulumi:providers:kubernetes::cluster"


class RenderedStates:
    """States of stacks whose manifests are in a folder."""

    def names(self) -> list[str]:
        return ["jobs", "units"]

    def read(self, stack: str) -> StackState:
        namespace = ResourceState(
            urn=f"urn:pulumi:{stack}::lakewright::kubernetes:core/v1:Namespace::units",
            type="kubernetes:core/v1:Namespace",
            custom=True,
            inputs={"metadata": {"name": f"tenant-{stack}"}},
            provider=f"{PROVIDER}::1",
        )
        inputs: dict[str, Any] = {"renderYamlToDirectory": "rendered"}
        provider = ResourceState(PROVIDER, "pulumi:providers:kubernetes", custom=True, id="1", inputs=inputs)
        return StackState(stack, [namespace, provider])


def refuse_to_record(_command: Sequence[str], _stacks: Sequence[SelectedStack]) -> Sequence[SparkReport]:
    raise AssertionError("nothing was measured")


def test_rendered_stack_without_units_is_no_problem() -> None:
    """A run for all stacks would fail each time for a tenant that has only jobs."""
    stacks = [
        SelectedStack("jobs", {"maintenance": {"schedule": "0 3 * * *"}}),
        SelectedStack("units", {"computing_units": [{"name": "notebook"}]}),
    ]

    computes = record_compute(cast(PulumiProject, None), stacks, refuse_to_record, reader=RenderedStates())

    assert [compute.stack.name for compute in computes] == ["units"]
    assert "so its cluster is not known" in computes[0].problem
    assert compute_exit_code(computes) == 1
