"""Read the specs and environments of stacks whose checks are evaluated. An invalid spec hides no other spec."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lakewright_engine.model.errors import EngineError

from lakewright.client_access.role_documents import AwsSettings
from lakewright.data_checks.result import StackChecks
from lakewright.data_checks.session import CheckTarget
from lakewright.environment.loading import platform_reader, stack_resolver
from lakewright.environment.stack_config import read_stack_config
from lakewright.errors import LakewrightError
from lakewright.validation.documents import as_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import SelectedStack


def check_targets(
    project: PulumiProject, selected: Sequence[SelectedStack]
) -> tuple[list[CheckTarget], list[StackChecks]]:
    """Return the tenants that have checks, and a result with the problem of each tenant that cannot be read.

    A stack whose file, or a file that its spec extends, cannot be read may have checks: it has such a problem.
    """
    targets: list[CheckTarget] = []
    unreadable: list[StackChecks] = []
    for stack in selected:
        try:
            if as_list(stack.require_spec().get("checks")):
                targets.append(_target(project, stack))
        except (LakewrightError, EngineError) as error:
            problem = " ".join(str(error).split())
            unreadable.append(StackChecks(stack.name, stack.tenant, stack.environment, problems=[problem]))
    return targets, unreadable


def _target(project: PulumiProject, stack: SelectedStack) -> CheckTarget:
    settings = project.stack_config(stack.name)
    spec, environment = read_stack_config(
        dict(stack.spec),
        source=str(project.stack_file(stack.name)),
        environments=project.root / "environments",
        environ=os.environ,
        region=settings.get("aws:region"),
        read_platform=platform_reader(project),
    )
    account = environment.aws
    return CheckTarget(
        stack.name,
        spec,
        environment.lakekeeper.reference,
        AwsSettings(account.profile, account.region, account.shared_credentials_file, account.endpoint),
        stack_resolver(settings),
    )
