"""Survey the servers of environments: all objects that stacks could manage, from lists, once per server."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from lakewright_engine.model.errors import EngineError

from lakewright.credentials import references
from lakewright.discovery.listing.managed_objects import collect_managed_objects, list_bucket_regions
from lakewright.discovery.listing.project_reading import ReadDepth, list_projects, read_project
from lakewright.discovery.survey.account_objects import list_account_objects, list_cluster_objects
from lakewright.discovery.survey.coverage import Coverage, SurveyedObject, list_project_objects, measure_coverage
from lakewright.environment.environment import AwsAccount, Environment
from lakewright.errors import LakewrightError
from lakewright.fleet.states import StateReader, state_reader
from lakewright.lakekeeper.api.connection.client import Client, ClientPool
from lakewright.lakekeeper.api.connection.errors import LakekeeperError

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState
    from lakewright_engine.project.project import PulumiProject

_DEPTH = ReadDepth()
_CONCURRENT_PROJECTS = 4


def survey_coverage(
    project: PulumiProject,
    environments: Sequence[str],
    *,
    load: Callable[[str], Environment],
    reader: StateReader | None = None,
) -> Coverage:
    """Return which of the objects on the servers of environments are in a stack of the project.

    Args:
        project: The project whose stacks count.
        environments: Names of the environments. A server of several environments is surveyed once.
        load: Returns an environment by its name.
        reader: Reads the states; the reader of the project's backend if omitted.
    """
    problems: list[str] = []
    objects: list[SurveyedObject] = []
    surveyed: set[str] = set()
    accounts: dict[str, AwsAccount] = {}
    clients = ClientPool()
    for name in environments:
        environment = load(name)
        lakekeeper = environment.lakekeeper.reference.model_dump_json()
        accounts[environment.aws.model_dump_json()] = environment.aws
        cluster = environment.kubernetes.model_dump_json()
        if f"lakekeeper {lakekeeper}" not in surveyed:
            objects += _list_lakekeeper_objects(clients, environment, problems)
        if f"kubernetes {cluster}" not in surveyed:
            objects += list_cluster_objects(environment.kubernetes, problems)
        surveyed |= {f"lakekeeper {lakekeeper}", f"kubernetes {cluster}"}
    resources = list(_read_resources(reader or state_reader(project), problems))
    bucket_regions = list_bucket_regions(resources)
    for account in accounts.values():
        objects += list_account_objects(account, bucket_regions, problems)
    return measure_coverage(objects, collect_managed_objects(resources), problems)


def _read_resources(reader: StateReader, problems: list[str]) -> Iterator[ResourceState]:
    names = reader.names()
    with ThreadPoolExecutor(_CONCURRENT_PROJECTS) as pool:
        for stack, state in zip(names, pool.map(partial(_read_state, reader), names), strict=True):
            if isinstance(state, str):
                problems.append(f"stack {stack} cannot be read, so its objects count as unmanaged: {state}")
            else:
                yield from state


def _read_state(reader: StateReader, stack: str) -> Iterable[ResourceState] | str:
    try:
        return reader.read(stack).resources
    except EngineError as error:
        return str(error)


def _list_lakekeeper_objects(
    clients: ClientPool, environment: Environment, problems: list[str]
) -> list[SurveyedObject]:
    reference = environment.lakekeeper.reference
    try:
        client = clients.get(reference, references.resolve)
        projects = list_projects(client)
        if unlisted := client.server().unlisted:
            print(f"note: {client.endpoint}: warehouses may exist that are not listed: {unlisted}", file=sys.stderr)
    except LakewrightError as error:
        problems.append(f"{reference.endpoint} could not be listed: {error}")
        return []

    def survey_project(project_id: str) -> list[SurveyedObject] | str:
        project_client: Client = clients.get(
            reference.model_copy(update={"project_id": project_id}), references.resolve
        )
        try:
            live_project = read_project(project_client, project_id, _DEPTH)
        except LakekeeperError as error:
            return f"project {project_id} at {reference.endpoint} could not be listed: {error}"
        if live_project is None:
            return []
        problems.extend(live_project.unread)
        return list(list_project_objects(live_project))

    objects: list[SurveyedObject] = []
    with ThreadPoolExecutor(_CONCURRENT_PROJECTS) as pool:
        for result in pool.map(survey_project, projects):
            if isinstance(result, str):
                problems.append(result)
            else:
                objects += result
    return objects
