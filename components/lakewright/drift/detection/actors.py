"""Name who made the differences of a report, by the records that environments name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.drift.actors.cloudtrail import AwsAccess, LookupSource, TrailBucketSource
from lakewright.drift.actors.lakekeeper_log import LakekeeperLogSource
from lakewright.drift.actors.source import AuditSource, AuditSourceError, DriftedObject, choose_actor
from lakewright.drift.model import Actor, DriftReport
from lakewright.environment.drift_settings import AuditSetting, LakekeeperLog, TrailBucket
from lakewright.environment.environment import AwsAccount, Environment
from lakewright.project_files.stack_files import environment_file, raw_environment
from lakewright.validation.documents import as_mapping
from lakewright.validation.problems import SpecError

if TYPE_CHECKING:
    from lakewright.drift.detection.steps import DriftRun
    from lakewright.drift.session import StackResource

_NAMESPACE = "pulumi-python:dynamic/lakekeeper:Namespace"
_TABLE = "pulumi-python:dynamic/lakekeeper:Table"


def name_actors(report: DriftReport, run: DriftRun) -> None:
    """Set the actor of each difference that a record explains.

    A difference whose object's server names the actor itself keeps that. Records that cannot be read are a problem of
    the stacks that have differences.
    """
    resources = {(resource.stack, resource.state.urn): resource for resource in run.resources}
    targets = _target_ids(run.resources)
    by_environment: dict[str, list[DriftedObject]] = defaultdict(list)
    for stack in report.stacks:
        for difference in stack.differences:
            resource = resources.get((difference.stack, difference.urn))
            if resource is not None and difference.actor is None and resource.updated:
                target_id = targets.get((difference.stack, *_read_target(resource)), "")
                by_environment[stack.environment].append(DriftedObject(difference, resource, target_id))
    actors_by_index: dict[int, list[Actor]] = defaultdict(list)
    for name, objects in by_environment.items():
        problems = _search(run.session.project.root, name, objects, actors_by_index)
        concerned = {drifted.difference.stack for drifted in objects}
        for stack in report.stacks:
            if stack.stack in concerned:
                stack.problems += problems
    updated = {id(o.difference): o.resource.updated for objects in by_environment.values() for o in objects}
    for stack in report.stacks:
        stack.differences = [
            replace(difference, actor=choose_actor(actors_by_index[id(difference)], updated[id(difference)]))
            if id(difference) in actors_by_index
            else difference
            for difference in stack.differences
        ]


def _target_ids(resources: Iterable[StackResource]) -> dict[tuple[str, ...], str]:
    """Return the ids of namespaces and tables by stack, warehouse id, namespace and name of the table."""
    ids: dict[tuple[str, ...], str] = {}
    for resource in resources:
        inputs, outputs = resource.state.inputs, resource.state.outputs
        warehouse_key = (resource.stack, str(inputs.get("warehouse_id")))
        if resource.state.type == _NAMESPACE:
            ids[*warehouse_key, str(inputs.get("name")), ""] = str(outputs.get("namespace_id") or "")
        elif resource.state.type == _TABLE:
            ids[*warehouse_key, str(inputs.get("namespace")), str(inputs.get("name"))] = str(
                outputs.get("table_id") or ""
            )
    return ids


def _read_target(resource: StackResource) -> tuple[str, str, str]:
    """Return warehouse id, namespace and name of the table that a grant is on."""
    target = as_mapping(resource.state.inputs.get("on"))
    warehouse, namespace, name = (str(target.get(key) or "") for key in ("warehouse_id", "namespace", "name"))
    return warehouse, namespace, name


def _search(
    root: Path, name: str, objects: Sequence[DriftedObject], actors_by_index: dict[int, list[Actor]]
) -> list[str]:
    """Add the actors of differences by the records of an environment. Return the sources that cannot be read."""
    raw = raw_environment(root, name)
    if not raw.get("drift") and not raw.get("sandbox"):
        return []
    try:
        environment = Environment.load(environment_file(root, name))
    except SpecError as error:
        return [f"who made the differences is not known: {error}"]
    problems: list[str] = []
    for setting in environment.drift.audit:
        source = open_source(setting, environment.aws, environment_file(root, name).parent)
        try:
            for drifted, actor in source.actors(objects):
                actors_by_index[id(drifted.difference)].append(actor)
        except AuditSourceError as error:
            problems.append(str(error))
    return problems


def open_source(setting: AuditSetting, account: AwsAccount, folder: Path) -> AuditSource:
    """Return the source of a setting.

    Args:
        setting: The setting of an environment.
        account: The environment's AWS account.
        folder: The folder of its file, where relative paths start.
    """
    if isinstance(setting, LakekeeperLog):
        return LakekeeperLogSource(folder / setting.lakekeeper_log.expanduser())
    access = AwsAccess(account.profile, account.region, account.shared_credentials_file, account.endpoint)
    if isinstance(setting.cloudtrail, TrailBucket):
        region = setting.cloudtrail.region or account.region
        return TrailBucketSource(replace(access, region=region), setting.cloudtrail.bucket, setting.cloudtrail.prefix)
    return LookupSource(access)
