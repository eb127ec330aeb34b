"""Revert the drift of stacks: preview each stack, plan only the drifted resources, and follow the plan."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.drift.healing.previewed_steps import PreviewedStep, list_changes, read_steps
from lakewright.drift.healing.stack_healing import StackHealing, choose_targets, find_revertible, keep_all
from lakewright.fleet.progress import choose_progress
from lakewright.fleet.results import FleetReport, StackResult
from lakewright.fleet.run_folder import RunFolder
from lakewright.fleet.runner import FleetCommand, FleetRunner
from lakewright.fleet.schedule import Bounds, OnError, default_parallel_stacks
from lakewright.fleet.shared_process import share_process

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.drift.model import DriftReport, StackDrift
    from lakewright.fleet.selection import SelectedStack

_CONCURRENT_STACKS = 8
"""Stacks of one environment that run at the same time."""
_PREVIEWS = 3
"""Previews of each stack: without a refresh, with a refresh, and limited to the drifted resources."""
_NO_PLAN = "no plan could be made for its stack"
_PLANS = Path(".lakewright", "fleet", "heal-plans")


@dataclass
class HealingPlans:
    """The plans that revert the drift of stacks."""

    healings: list[StackHealing] = field(default_factory=list[StackHealing])
    """All stacks with differences, also stacks in which nothing is reverted."""
    steps: dict[str, list[PreviewedStep]] = field(default_factory=dict[str, list[PreviewedStep]])
    """The steps of each plan, by the name of the stack."""
    failed: list[StackResult] = field(default_factory=list[StackResult])
    """Stacks without a plan because a preview failed."""
    is_interrupted: bool = False
    folder: Path = Path()
    """The folder of the plans."""


class HealingRun:
    """The commands that revert the drift of stacks."""

    def __init__(self, project: PulumiProject, stacks: Sequence[SelectedStack]) -> None:
        """Prepare a run on stacks of a project."""
        self._project = project
        self._stacks = {stack.name: stack for stack in stacks}
        self._environ: dict[str, str] = {}

    def plan(self, report: DriftReport) -> HealingPlans:
        """Preview the stacks with drift, and make a plan of each that is limited to the drifted resources.

        Nothing is changed on the servers.
        """
        drifted = [stack for stack in report.stacks if find_revertible(stack)]
        plans = HealingPlans(folder=self._empty_folder())
        with share_process(_PREVIEWS * len(drifted)) as self._environ:
            self._make_plans(plans, report, drifted)
        return plans

    def apply(self, plans: HealingPlans) -> FleetReport:
        """Follow the plans."""
        with share_process(len(plans.steps)) as self._environ:
            return self._run(
                list(plans.steps), "heal", ("up",), lambda stack: ("--plan", str(self._plan_file(plans, stack)))
            )

    def _make_plans(self, plans: HealingPlans, report: DriftReport, drifted: Sequence[StackDrift]) -> None:
        names = [stack.stack for stack in drifted]
        undeployed = self._collect(plans, self._run(names, "heal-preview", ("preview",)))
        refreshed = self._collect(plans, self._run(list(undeployed), "heal-refresh", ("preview", "--refresh")))
        for stack in report.stacks:
            if stack.stack in refreshed:
                plans.healings.append(choose_targets(stack, undeployed[stack.stack], refreshed[stack.stack]))
            elif stack.differences:
                plans.healings.append(keep_all(stack, _NO_PLAN))
        targets = {healing.stack: healing.targets for healing in plans.healings if healing.reverted}

        def options(stack: str) -> tuple[str, ...]:
            limits = tuple(word for urn in targets[stack] for word in ("--target", urn))
            return *limits, "--save-plan", str(self._plan_file(plans, stack))

        planned = self._collect(plans, self._run(list(targets), "heal-plan", ("preview", "--refresh"), options))
        for index, healing in enumerate(plans.healings):
            if not healing.reverted:
                continue
            steps = list_changes(planned.get(healing.stack, {}).values())
            foreign = [step for step in steps if step.urn not in healing.targets]
            if healing.stack in planned and not foreign:
                plans.steps[healing.stack] = steps
                continue
            drift = next(stack for stack in drifted if stack.stack == healing.stack)
            reason = f"its plan would also {foreign[0].describe()}" if foreign else _NO_PLAN
            plans.healings[index] = keep_all(drift, reason)

    def _run(
        self,
        names: Sequence[str],
        command: str,
        arguments: tuple[str, ...],
        extra_arguments: Callable[[str], tuple[str, ...]] = lambda _stack: (),
    ) -> FleetReport:
        """Run a command on stacks in parallel."""
        stacks = [self._stacks[name] for name in names]
        if not stacks:
            return FleetReport(command, [], 0.0)
        folder = RunFolder.create(self._project.root, command, arguments, names)
        bounds = Bounds(default_parallel_stacks(), _CONCURRENT_STACKS)
        label = f"drift --{command.replace('-', ': ')}"
        with choose_progress(label, len(stacks)) as progress:
            runner = FleetRunner(
                self._project,
                FleetCommand(command, arguments, extra_arguments),
                folder,
                progress,
                bounds=bounds,
                on_error=OnError.CONTINUE,
                environ=self._environ,
            )
            try:
                return runner.run(stacks)
            finally:
                folder.close()

    def _empty_folder(self) -> Path:
        """Remove the plans of the last run. Return the folder for new plans."""
        folder = self._project.root / _PLANS
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)
        return folder

    def _plan_file(self, plans: HealingPlans, stack: str) -> Path:
        return plans.folder / f"{stack}.plan.json"

    def _collect(self, plans: HealingPlans, report: FleetReport) -> dict[str, Mapping[str, PreviewedStep]]:
        """Return the steps of the stacks whose preview succeeded, by name. Note the other stacks."""
        plans.is_interrupted = plans.is_interrupted or report.is_interrupted
        plans.failed += report.remaining
        return {
            result.stack.name: read_steps(result.document)
            for result in report.results
            if result not in report.remaining
        }
