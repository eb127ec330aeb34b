"""`lakewright doctor`: check the machine and the services of a stack."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright.cli.options import HERE, Directory, load_project

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject
    from lakewright_engine.project.stack_config import StackConfig

    from lakewright.doctor import Finding

COLORS = {"ok": "green", "optional": "yellow", "missing": "red"}


def doctor(
    stack: Annotated[
        str | None,
        typer.Option(
            "--stack",
            "-s",
            help="Also check Lakekeeper, S3 and the cluster of this tenant, or the cluster of this platform.",
        ),
    ] = None,
    directory: Directory = HERE,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="Show only what is missing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check what is installed and reachable, and say how to fix what is missing. Prints one line for each check.

    Exit code 1 if something is missing.

    Example: lakewright doctor --stack acme
    """
    from lakewright.doctor import check_machine  # noqa: PLC0415 - `--help` needs none of it

    findings = check_machine()
    if stack is not None:
        findings += _check_stack(stack, directory)
    missing = [finding for finding in findings if finding.state == "missing"]
    printed_findings = missing if failed else findings
    if as_json:
        print(json.dumps({"version": 1, "findings": [finding.to_json() for finding in printed_findings]}, indent=2))
    else:
        _print_lines(printed_findings, includes_stack=stack is not None)
    if missing:
        raise typer.Exit(1)


def _check_stack(stack: str, directory: Path) -> list[Finding]:
    from lakewright.platform_stack.settings.platform import PLATFORM_KEY  # noqa: PLC0415

    project = load_project(directory)
    key, config = f"{project.name}:{PLATFORM_KEY}", project.stack_config(stack)
    if key in config.values:
        return _check_platform(config.values[key], config.file, "config", config.find_written_key(key))
    if key in project.defaults:
        return _check_platform(project.defaults[key], project.file, *project.find_default_path(key))
    return _check_tenant(project, config)


def _check_platform(raw: Any, file: Path, *path: str) -> list[Finding]:
    """Check the platform whose spec lies at a path of a file. `pulumi config set` writes it as JSON text."""
    from lakewright.doctor import check_platform  # noqa: PLC0415
    from lakewright.platform_stack.settings.checks import parse_platform_spec  # noqa: PLC0415
    from lakewright.project_files.shared_values import locate_spec_problems  # noqa: PLC0415

    if isinstance(raw, str):
        with contextlib.suppress(ValueError):
            raw = json.loads(raw)
    with locate_spec_problems(file, *path):
        spec = parse_platform_spec(raw, str(file))
    return check_platform(spec.kubernetes)


def _check_tenant(project: PulumiProject, config: StackConfig) -> list[Finding]:
    from lakewright.doctor import Finding, check_services, check_tag_policy  # noqa: PLC0415
    from lakewright.environment.loading import load_environment, stack_resolver  # noqa: PLC0415
    from lakewright.environment.platform import object_tags  # noqa: PLC0415
    from lakewright.environment.stack_config import rule_check  # noqa: PLC0415
    from lakewright.names.object_names import namespace_name  # noqa: PLC0415
    from lakewright.project_files.shared_values import find_spec_positions  # noqa: PLC0415
    from lakewright.project_files.stack_files import SPEC_SECTIONS  # noqa: PLC0415
    from lakewright.spec import SpecError, read_stack_file  # noqa: PLC0415

    spec = read_stack_file(config.file)
    environment = load_environment(project, spec.environment)
    # Stores get the secrets that the spec refers to, so the environment must allow them first.
    if problems := [*rule_check(environment, spec.environment).problems(spec.model_dump())]:
        raise SpecError(str(config.file), find_spec_positions(problems, config.file, *SPEC_SECTIONS))
    buckets = [probe for storage in spec.storage.values() if (probe := storage.probe())]
    storage_findings = [
        Finding(f"deletion in {storage.bucket}", "optional", "`may_delete: false`: nothing is purged or compacted")
        for storage in spec.storage.values()
        if not storage.allows_deletion
    ]
    storage_findings += [
        Finding(
            f"bucket {storage.bucket}",
            "optional",
            f"not checked: backend `{storage.backend}` is reached by Lakekeeper only",
            "nothing; Lakekeeper tries it when `up` makes the warehouse",
        )
        for storage in spec.storage.values()
        if storage.service != "s3"
    ]
    service_findings = check_services(
        environment,
        buckets,
        project_id=spec.project_id,
        namespace=namespace_name(spec.name),
        resolve=stack_resolver(config),
    )
    makes_bucket = any(storage.makes_bucket for storage in spec.storage.values())
    makes_key = any(storage.has_own_key for storage in spec.storage.values())
    resource_types = (*(["s3:bucket"] if makes_bucket else []), *(["kms:key"] if makes_key else []))
    tag_findings = check_tag_policy(environment.aws, object_tags(spec, environment), resource_types)
    return storage_findings + service_findings + tag_findings


def _print_lines(findings: list[Finding], *, includes_stack: bool) -> None:
    from lakewright.terminal.console import open_console  # noqa: PLC0415
    from lakewright.terminal.text_lines import CheckLine, print_check_lines  # noqa: PLC0415

    console = open_console(highlight=False)
    print_check_lines(
        console,
        [
            CheckLine(finding.state, COLORS[finding.state], finding.subject, finding.result, finding.fix)
            for finding in findings
        ],
    )
    if not includes_stack:
        console.print("Name a stack with --stack to check its services too.", soft_wrap=True)
