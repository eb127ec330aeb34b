"""The tenant program: read the stack's configuration, declare the tenant, export outputs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi

from lakewright.environment.extras import explain_missing_package
from lakewright.environment.local_files import provide_client, trust_stores
from lakewright.environment.platform import Platform
from lakewright.environment.platform_reference import read_in_program
from lakewright.environment.stack_config import read_stack_config
from lakewright.project_files.project_root import project_root
from lakewright.project_files.stack_files import SPEC_SECTIONS
from lakewright.spec import SPEC_KEY, SpecError
from lakewright.tenant.tenant import Tenant
from lakewright.validation.moment import read_clock

if TYPE_CHECKING:
    from lakewright.validation.moment import Clock


def declare_tenant(clock: Clock = read_clock) -> None:
    """Declare the tenant of the stack's configuration. Problems are reported before any call.

    Args:
        clock: Time with which ends of shares are compared.
    """
    try:
        # Not the project's own namespace: the commands find the spec under this key in projects of any name.
        space, _, key = SPEC_KEY.partition(":")
        source = f"stack {pulumi.get_stack()}, {SPEC_KEY}"
        environments = project_root(Path.cwd()) / "environments"
        tenant = create_tenant(pulumi.Config(space).get_object(key), environments, source, clock=clock)
    except SpecError as error:
        raise pulumi.RunError(str(_add_positions(error))) from None
    except ModuleNotFoundError as error:
        raise pulumi.RunError(explain_missing_package(error)) from error
    pulumi.export("warehouse_ids", tenant.warehouse_ids)
    pulumi.export("catalog_config", tenant.catalog_config.apply(lambda config: config.model_dump(mode="json")))
    pulumi.export("role_arns", tenant.role_arns)
    if tenant.roles_of_others:
        pulumi.export("roles_of_others", tenant.roles_of_others)
    pulumi.export("computing_units", tenant.computing_units)
    if tenant.texera_register:
        pulumi.export("texera_register", tenant.texera_register)


def _add_positions(error: SpecError) -> SpecError:
    """Return the error with positions in the stack's file."""
    from lakewright_engine.project.project import PulumiProject  # noqa: PLC0415 - only after a mistake

    from lakewright.project_files.shared_values import find_spec_positions  # noqa: PLC0415

    file = PulumiProject.load(project_root(Path.cwd())).stack_file(pulumi.get_stack())
    return SpecError(error.source, find_spec_positions(error.problems, file, *SPEC_SECTIONS))


def create_tenant(
    raw: Any,
    environments: Path,
    source: str,
    opts: pulumi.ResourceOptions | None = None,
    *,
    clock: Clock = read_clock,
) -> Tenant:
    """Declare the tenant of a spec.

    Args:
        raw: The spec, as a program has it.
        environments: Folder of the environment files.
        source: Where the spec was read, for messages.
        opts: Options of the component.
        clock: Time with which ends of shares are compared.

    Raises:
        SpecError: With all problems of the spec and its environment.
    """
    region = pulumi.Config("aws").get("region")
    spec, environment = read_stack_config(
        raw,
        source=source,
        environments=environments,
        environ=os.environ,
        region=region,
        read_platform=read_in_program,
    )
    environment = trust_stores(environment, [storage.store_certificates for storage in spec.storage.values()])
    provide_client(environment, spec.name)
    now = clock()
    platform = Platform(environment, tenant=spec.name, project_id=spec.project_id, default_region=region, now=now)
    return Tenant(spec.end_adoptions(now), platform, opts)
