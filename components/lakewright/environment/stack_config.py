"""Read a stack's spec and its environment together, and report the problems of both at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from lakewright.environment.aws_checks import aws_problems
from lakewright.environment.cluster import find_mistake
from lakewright.environment.compute_checks import compute_problems
from lakewright.environment.environment import Environment
from lakewright.environment.platform import NO_PRINCIPAL, NO_REGION
from lakewright.environment.platform_reference import PlatformReader
from lakewright.environment.tenant_spec_rules import RuleCheck
from lakewright.environment.unit_identity import identity_problems
from lakewright.kubernetes import connect
from lakewright.kubernetes.runtimes import RUNTIMES
from lakewright.project_files.shared_values import EXTENDS, FOLDER, merge_defaults
from lakewright.spec import Problem, SpecError, TenantSpec, parse_spec
from lakewright.spec.checks.aws import check_vending, key_checks
from lakewright.spec.checks.cross_checks import (
    find_made_storages,
    is_on_aws,
    list_storages,
    makes_roles,
    place_warehouses,
)
from lakewright.spec.computing_unit import Runtime
from lakewright.validation.documents import as_list, as_mapping, list_items
from lakewright.validation.problems import format_path


def read_stack_config(
    raw: Any,
    *,
    source: str,
    environments: Path,
    environ: Mapping[str, str],
    region: str | None,
    read_platform: PlatformReader | None = None,
) -> tuple[TenantSpec, Environment]:
    """Return the spec, with the values that it extends, and its environment.

    Args:
        raw: The spec, as the stack's configuration has it.
        source: Where it was read, for messages.
        environments: Folder of the environment files. Files that specs extend are in the folder `defaults` beside it.
        environ: Environment variables.
        region: `aws:region` of the stack.
        read_platform: Reads the outputs of the platform stack that the environment may name.

    Raises:
        SpecError: With all problems of both.
    """
    if isinstance(raw, dict) and EXTENDS in raw:
        raw = dict(merge_defaults(cast(dict[str, Any], raw), environments.parent / FOLDER, source).document)
    spec, problems = _spec(raw, source)
    if not isinstance(raw, dict):
        raise SpecError(source, problems)
    document = cast(dict[str, Any], raw)
    environment = None
    name = document.get("environment")
    # A problem of the name itself is reported already.
    if isinstance(name, str) and not any(problem.path == "environment" for problem in problems):
        environment, environment_problems = _environment(environments / f"{name}.yaml", environ, read_platform)
        problems += environment_problems
    if environment is not None:
        problems += _find_missing_settings(document, environment, region)
        problems += aws_problems(document, environment, region or environment.aws.region)
        problems += _images(document, environment, str(name))
        problems += _connect(document, environment, str(name))
        problems += rule_check(environment, str(name)).problems(document)
        if spec is not None:
            problems += compute_problems(spec, environment, str(name))
            problems += identity_problems(spec, environment)
    if spec is None or environment is None or problems:
        raise SpecError(source, problems)
    return spec, environment


def rule_check(environment: Environment, name: str) -> RuleCheck:
    """Return the check of restricted fields of specs in an environment."""
    return RuleCheck(environment.tenant_specs, name, environment.own_references)


def _spec(raw: Any, source: str) -> tuple[TenantSpec | None, list[Problem]]:
    try:
        return parse_spec(raw, source), []
    except SpecError as error:
        return None, error.problems


def _environment(
    path: Path, environ: Mapping[str, str], read_platform: PlatformReader | None
) -> tuple[Environment | None, list[Problem]]:
    try:
        return Environment.load(path, environ, read_platform=read_platform), []
    except SpecError as error:
        return None, [Problem(error.source, str(problem), position=problem.position) for problem in error.problems]


def _images(document: Mapping[str, Any], environment: Environment, name: str) -> list[Problem]:
    """Find missing images, and images without a digest. The path of a default image is in the environment."""
    cluster = environment.kubernetes
    required_images: list[tuple[str, object, str, str | None]] = []
    for index, unit in enumerate(as_list(document.get("computing_units"))):
        runtime = as_mapping(unit).get("runtime")
        if isinstance(runtime, str) and runtime in RUNTIMES:
            setting = f"kubernetes.images.{runtime}"
            required_images.append(
                (
                    f"computing_units.{index}.image",
                    as_mapping(unit).get("image"),
                    setting,
                    cluster.image(cast(Runtime, runtime)),
                )
            )
    maintenance = as_mapping(document.get("maintenance"))
    maintenance_image = cluster.maintenance_image
    setting = "kubernetes.maintenance_image" if maintenance_image else "kubernetes.images.spark"
    if maintenance:
        required_images.append(
            ("maintenance.image", maintenance.get("image"), setting, maintenance_image or cluster.image("spark"))
        )
    for index, unit in list_items(document, "computing_units"):
        # The activator of idle units has the image of the maintenance jobs.
        if unit.get("idle_after") is not None and not maintenance.get("image"):
            required_images.append(
                (f"computing_units.{index}.idle_after", None, setting, maintenance_image or cluster.image("spark"))
            )
    mistakes: dict[str, str] = {}
    for path, image, setting, default in required_images:
        if image is None and (reason := find_mistake(default, trial=cluster.trial)):
            mistakes[path if default is None else f"environment {name}: {setting}"] = reason
        elif isinstance(image, str) and (reason := find_mistake(image, trial=cluster.trial)):
            mistakes[path] = reason
    return [Problem(path, reason) for path, reason in mistakes.items()]


def _connect(document: Mapping[str, Any], environment: Environment, name: str) -> list[Problem]:
    """Find computing units that clients in other pods could not reach."""
    cluster = environment.kubernetes
    runtimes = [as_mapping(unit).get("runtime") for unit in as_list(document.get("computing_units"))]
    mistakes = [connect.find_mistake(runtime, cluster.connect, trial=cluster.trial) for runtime in runtimes]
    return [Problem(f"environment {name}: kubernetes.connect", reason) for reason in dict.fromkeys(mistakes) if reason]


def _find_missing_settings(document: Mapping[str, Any], environment: Environment, region: str | None) -> list[Problem]:
    """Return required settings that neither spec, stack nor environment have."""
    problems: list[Problem] = []
    if not (region or environment.aws.region):
        new_storages = {name: item for name, item in find_made_storages(document).items() if is_on_aws(item)}
        problems += [
            Problem(f"storage.{name}.region", NO_REGION)
            for name in new_storages
            if not new_storages[name].get("region")
        ]
    if default := region or environment.aws.region:
        mistakes = [*check_vending(place_warehouses(document), default), *key_checks(list_storages(document), default)]
        problems += [Problem(format_path(path), expected) for path, expected in mistakes]
    if makes_roles(document) and not environment.lakekeeper.principal_arn:
        problems.append(Problem(f"environment {document['environment']}: lakekeeper.principal_arn", NO_PRINCIPAL))
    return problems
