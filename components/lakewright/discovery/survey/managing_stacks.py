"""The stacks of a project that manage projects of a Lakekeeper, from their states and their files."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from lakewright_engine.model.errors import EngineError

from lakewright.discovery.listing.managed_objects import managed_objects, server_key
from lakewright.fleet.states import state_reader
from lakewright.project_files.servers import servers_of
from lakewright.project_files.stack_files import environment_file, raw_environment, raw_spec
from lakewright.terminal.escaping import escape_line
from lakewright.validation.documents import mapping_of, text_of

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject


def stacks_by_project(project: PulumiProject, endpoint: str, environment: str) -> dict[str, str]:
    """Return the name of the stack that manages each project of a server, by the project's id.

    A state that cannot be read is reported; its stack file still counts.
    """
    found = dict(_declared(project, environment))
    server = server_key(endpoint)
    reader = state_reader(project)
    for stack in reader.names():
        try:
            state = reader.read(stack)
        except EngineError as error:
            print(f"warning: stack {stack}: {escape_line(error)}", file=sys.stderr)
            continue
        for owner, project_id in managed_objects(state.resources).by_kind.get("project", ()):
            if owner == server:
                found[project_id] = stack
    return found


def _declared(project: PulumiProject, environment: str) -> list[tuple[str, str]]:
    """Return project and stack of each stack file whose environment has the same Lakekeeper."""
    own = servers_of(
        environment, raw_environment(project.root, environment), environment_file(project.root, environment).parent
    )
    found: list[tuple[str, str]] = []
    for file in sorted(project.stack_config_dir.glob("Pulumi.*.yaml")):
        spec = raw_spec(file)
        name = text_of(spec.get("name"))
        theirs = text_of(spec.get("environment"))
        if not name or not theirs:
            continue
        folder = environment_file(project.root, theirs).parent
        if servers_of(theirs, raw_environment(project.root, theirs), folder).lakekeeper == own.lakekeeper:
            project_id = text_of(mapping_of(spec.get("project")).get("id")) or name
            found.append((project_id, file.stem.removeprefix("Pulumi.")))
    return found
