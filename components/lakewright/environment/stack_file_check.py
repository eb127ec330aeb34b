"""Check a stack file as `up` would, as far as that needs no server: the spec in its environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakewright.environment.environment import is_sandbox_stopped
from lakewright.environment.stack_config import read_stack_config
from lakewright.project_files.plugins import reads_specs
from lakewright.project_files.shared_values import locate_spec_problems
from lakewright.project_files.stack_files import SPEC_SECTIONS, environment_file, raw_environment
from lakewright.spec import SPEC_KEY, Problem, SpecError, TenantSpec, parse_spec
from lakewright.spec.parsing import read_stack_settings
from lakewright.storage.existing import fill_missing_roles
from lakewright.validation.documents import as_mapping


@dataclass(frozen=True)
class CheckedStackFile:
    """A valid stack file."""

    spec: TenantSpec
    notes: tuple[str, ...]
    """Parts that were not checked, or that `up` still requires."""


def check_stack_file(path: Path, root: Path | None, environ: Mapping[str, str]) -> CheckedStackFile:
    """Check a stack file, and its spec in the environment that it names.

    The environment's own settings are not checked if they come from a platform stack, or from a sandbox that is
    not running: both are read from elsewhere.

    Args:
        path: The stack file.
        root: Folder of the project; None for a file outside a project, whose environment is not checked.
        environ: Environment variables.

    Raises:
        SpecError: With all problems of spec and environment.
    """
    settings = read_stack_settings(path)
    with locate_spec_problems(path, *SPEC_SECTIONS):
        return _check_settings(settings, path, root, environ)


def _check_settings(
    settings: Mapping[str, Any], path: Path, root: Path | None, environ: Mapping[str, str]
) -> CheckedStackFile:
    document, unnamed = fill_missing_roles(settings[SPEC_KEY])
    notes = [
        f"storage.{name}.role_arn: name the role before `up`; `lakewright byo reserve` prints its policies"
        for name in unnamed
    ]
    if root is None:
        return CheckedStackFile(parse_spec(document, str(path)), tuple(notes))
    if reason := _explain_unread_environment(document, root, environ):
        return CheckedStackFile(parse_spec(document, str(path)), (*notes, reason))
    region = settings.get("aws:region")
    spec, _ = read_stack_config(
        document,
        source=str(path),
        environments=environment_file(root, "any").parent,
        environ=environ,
        region=region if isinstance(region, str) else None,
    )
    return CheckedStackFile(spec, tuple(notes))


def refuse_unread_specs(program: Path, source: str) -> None:
    """Refuse a project whose program cannot read specs: `up` would succeed and make nothing.

    Args:
        program: File or folder of the program.
        source: The project's file, for the message.

    Raises:
        SpecError: There is no program; or no file of it names `lakewright`, and it imports nothing but the SDKs of
            Pulumi.
    """
    if program.is_dir() and not (program / "__main__.py").is_file():
        reason = f"{program} has no __main__.py"
    elif not reads_specs(program):
        reason = f"{program} names `lakewright` nowhere, so `up` would make nothing"
    else:
        return
    expected = (
        f"expected a program that declares the tenant; {reason}. Write `from lakewright import declare_tenant` and"
        " `declare_tenant()` into its __main__.py"
    )
    raise SpecError(source, [Problem("main", expected)])


def _explain_unread_environment(document: Any, root: Path, environ: Mapping[str, str]) -> str:
    """Return why the environment's settings are not checked here; empty if they are."""
    name = as_mapping(document).get("environment")
    if not isinstance(name, str):
        return ""
    environment = raw_environment(root, name)
    if "platform" in environment:
        return f"environment {name}: not checked, since it takes settings from a platform stack; `preview` checks it"
    if is_sandbox_stopped(environment, environment_file(root, name).parent, environ):
        return f"environment {name}: not checked, since its sandbox is not running"
    return ""
