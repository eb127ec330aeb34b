"""Lookups of a server and of its projects."""

from lakewright.lakekeeper.api.connection.errors import NothingFoundError
from lakewright.lakekeeper.api.management import projects
from lakewright.lakekeeper.server.lookup_base import LookupResult, Server, as_output, format_names, reach


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
    live_server = reach(server).server_now()
    return ServerInfo(
        endpoint=live_server.endpoint,
        version=live_server.version_text,
        server_id=live_server.server_id,
        bootstrapped=live_server.bootstrapped,
        default_project_id=live_server.default_project_id,
        authz_backend=live_server.authz_backend,
        queues=live_server.queues,
    )


def get_projects(*, server: Server) -> list[ProjectInfo]:
    """Return the projects that this identity may see, sorted by name. Names are not unique; ids are."""
    visible_projects = projects.list_all(reach(server))
    project_infos = [ProjectInfo(project_id=project_id, name=name) for project_id, name in visible_projects.items()]
    return sorted(project_infos, key=lambda project: (project.name, project.project_id))


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
        project_name = projects.read_name(client, project_id)
        if project_name is None:
            raise NothingFoundError(f"project {project_id} is not at {client.endpoint}. {_there_are(server)}")
        return ProjectInfo(project_id=project_id, name=project_name)
    matching_projects = [
        project
        for project in get_projects(server=server)
        if project.name == name and project_id in {None, project.project_id}
    ]
    if len(matching_projects) == 1:
        return matching_projects[0]
    if not matching_projects:
        raise NothingFoundError(f"no project at {client.endpoint} is named `{name}`. {_there_are(server)}")
    raise NothingFoundError(
        f"{len(matching_projects)} projects at {client.endpoint} are named `{name}`:"
        f" {format_names(project.project_id for project in matching_projects)}. Names are not unique; look it"
        " up by `project_id`."
    )


def _there_are(server: Server) -> str:
    visible_names = format_names(f"{project.project_id} ({project.name})" for project in get_projects(server=server))
    return f"This identity sees: {visible_names}."


get_server_info_output = as_output(get_server_info)
get_project_output = as_output(get_project)
get_projects_output = as_output(get_projects)
