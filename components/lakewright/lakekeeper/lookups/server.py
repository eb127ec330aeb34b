"""Look-ups of a server and of its projects."""

from lakewright.lakekeeper.api.connection.errors import NothingFoundError
from lakewright.lakekeeper.api.management import projects
from lakewright.lakekeeper.lookups.base import LookupResult, Server, as_output, listed, reach


class ServerInfo(LookupResult):
    """Version, id and settings of a server."""

    endpoint: str
    version: str
    server_id: str
    bootstrapped: bool
    default_project_id: str | None
    """None if the server has no default project."""
    authz_backend: str
    """`allow-all`, `openfga`, or the name of another authorizer."""
    queues: tuple[str, ...]


class ProjectInfo(LookupResult):
    """A project."""

    project_id: str
    name: str


def get_server_info(*, server: Server) -> ServerInfo:
    """Return the version, id and settings of a server."""
    found = reach(server).server_now()
    return ServerInfo(
        endpoint=found.endpoint,
        version=found.version_text,
        server_id=found.server_id,
        bootstrapped=found.bootstrapped,
        default_project_id=found.default_project_id,
        authz_backend=found.authz_backend,
        queues=found.queues,
    )


def get_projects(*, server: Server) -> list[ProjectInfo]:
    """Return the projects that this identity may see, sorted by name. Names are not unique; ids are."""
    found = projects.list_all(reach(server))
    known = [ProjectInfo(project_id=project_id, name=name) for project_id, name in found.items()]
    return sorted(known, key=lambda project: (project.name, project.project_id))


def get_project(*, server: Server, project_id: str | None = None, name: str | None = None) -> ProjectInfo:
    """Return a project by its id, or by its name if the name is unique.

    Without id and name, return the server's default project.

    Raises:
        NothingFoundError: If there is no such project, or several projects have the name.
    """
    client = reach(server)
    if name is None:
        project_id = project_id or client.server().default_project_id
        if project_id is None:
            raise NothingFoundError(f"{client.endpoint} has no default project. Pass `project_id` or `name`.")
        found = projects.name_of(client, project_id)
        if found is None:
            raise NothingFoundError(f"project {project_id} is not at {client.endpoint}. {_there_are(server)}")
        return ProjectInfo(project_id=project_id, name=found)
    named = [
        project
        for project in get_projects(server=server)
        if project.name == name and project_id in {None, project.project_id}
    ]
    if len(named) == 1:
        return named[0]
    if not named:
        raise NothingFoundError(f"no project at {client.endpoint} is named `{name}`. {_there_are(server)}")
    raise NothingFoundError(
        f"{len(named)} projects at {client.endpoint} are named `{name}`:"
        f" {listed(project.project_id for project in named)}. Names are not unique; look it up by `project_id`."
    )


def _there_are(server: Server) -> str:
    found = listed(f"{project.project_id} ({project.name})" for project in get_projects(server=server))
    return f"This identity sees: {found}."


get_server_info_output = as_output(get_server_info)
get_project_output = as_output(get_project)
get_projects_output = as_output(get_projects)
