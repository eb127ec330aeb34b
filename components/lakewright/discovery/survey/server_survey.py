"""Survey the servers of environments: all objects that stacks could manage, from lists, once per server."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from lakewright_engine.model.errors import EngineError

from lakewright.credentials import references
from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.discovery.listing.managed_objects import managed_objects
from lakewright.discovery.listing.project_reading import ReadDepth, list_projects, read_project
from lakewright.discovery.survey.account_objects import account_objects, cluster_objects
from lakewright.discovery.survey.coverage import Coverage, SurveyedObject, coverage_of, objects_of_project
from lakewright.environment.environment import Environment
from lakewright.fleet.states import StateReader, state_reader
from lakewright.lakekeeper.api.connection.client import Client, ClientPool
from lakewright.lakekeeper.api.connection.errors import LakekeeperError

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState
    from lakewright_engine.project.project import PulumiProject

_DEPTH = ReadDepth()
_PROJECTS_AT_ONCE = 4


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
        environments: Names of the environments. Those with one server are asked once.
        load: Returns an environment by its name.
        reader: Reads the states; that of the project's backend if omitted.
    """
    problems: list[str] = []
    found: list[SurveyedObject] = []
    asked: set[str] = set()
    clients = ClientPool()
    for name in environments:
        environment = load(name)
        lakekeeper = environment.lakekeeper.reference.model_dump_json()
        account = environment.aws.model_dump_json()
        cluster = environment.kubernetes.model_dump_json()
        if f"lakekeeper {lakekeeper}" not in asked:
            found += _lakekeeper_objects(clients, environment, problems)
        if f"aws {account}" not in asked:
            found += account_objects(environment.aws, problems)
        if f"kubernetes {cluster}" not in asked:
            found += cluster_objects(environment.kubernetes, problems)
        asked |= {f"lakekeeper {lakekeeper}", f"aws {account}", f"kubernetes {cluster}"}
    states = reader or state_reader(project)
    return coverage_of(found, managed_objects(_resources(states, problems)), problems)


def _resources(reader: StateReader, problems: list[str]) -> Iterator[ResourceState]:
    names = reader.names()
    with ThreadPoolExecutor(_PROJECTS_AT_ONCE) as pool:
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


def _lakekeeper_objects(clients: ClientPool, environment: Environment, problems: list[str]) -> list[SurveyedObject]:
    reference = environment.lakekeeper.reference
    try:
        client = clients.get(reference, references.resolve)
        projects = list_projects(client)
        if unlisted := client.server().unlisted:
            print(f"note: {client.endpoint}: warehouses may exist that are not listed: {unlisted}", file=sys.stderr)
    except (LakekeeperError, UnresolvedCredentialError) as error:
        problems.append(f"{reference.endpoint} could not be listed: {error}")
        return []

    def of_project(project_id: str) -> list[SurveyedObject] | str:
        own: Client = clients.get(reference.model_copy(update={"project_id": project_id}), references.resolve)
        try:
            found = read_project(own, project_id, _DEPTH)
        except LakekeeperError as error:
            return f"project {project_id} at {reference.endpoint} could not be listed: {error}"
        if found is None:
            return []
        problems.extend(found.unread)
        return list(objects_of_project(found))

    listed: list[SurveyedObject] = []
    with ThreadPoolExecutor(_PROJECTS_AT_ONCE) as pool:
        for some in pool.map(of_project, projects):
            if isinstance(some, str):
                problems.append(some)
            else:
                listed += some
    return listed
