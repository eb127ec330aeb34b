"""The stacks of a project that manage projects of a Lakekeeper, from their states and their files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from lakewright_engine.model.errors import EngineError

from lakewright.discovery.listing.managed_objects import collect_managed_objects, server_key
from lakewright.fleet.states import state_reader
from lakewright.project_files.servers import derive_servers
from lakewright.project_files.stack_files import environment_file, find_project_id, raw_environment, raw_spec
from lakewright.terminal.escaping import escape_line
from lakewright.validation.documents import as_text

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject


def find_managing_stacks(project: PulumiProject, endpoint: str, environment: str) -> dict[str, str]:
    """Return the name of the stack that manages each project of a server, by the project's id.

    A state that cannot be read is reported; its stack file still counts.
    """
    managing_stacks = dict(_list_declared_stacks(project, environment))
    server = server_key(endpoint)
    reader = state_reader(project)
    for stack in reader.names():
        try:
            state = reader.read(stack)
        except EngineError as error:
            print(f"warning: stack {stack}: {escape_line(error)}", file=sys.stderr)
            continue
        for owner, project_id in collect_managed_objects(state.resources).by_kind.get("project", ()):
            if owner == server:
                managing_stacks[project_id] = stack
    return managing_stacks


def _list_declared_stacks(project: PulumiProject, environment: str) -> list[tuple[str, str]]:
    """Return project and stack of each stack file whose environment has the same Lakekeeper."""
    servers = derive_servers(
        environment, raw_environment(project.root, environment), environment_file(project.root, environment).parent
    )
    declared_stacks: list[tuple[str, str]] = []
    for file in sorted(project.stack_config_dir.glob("Pulumi.*.yaml")):
        spec = raw_spec(file)
        name = as_text(spec.get("name"))
        environment_name = as_text(spec.get("environment"))
        if not name or not environment_name:
            continue
        folder = environment_file(project.root, environment_name).parent
        if (
            derive_servers(environment_name, raw_environment(project.root, environment_name), folder).lakekeeper
            == servers.lakekeeper
        ):
            declared_stacks.append((find_project_id(spec) or name, file.stem.removeprefix("Pulumi.")))
    return declared_stacks
