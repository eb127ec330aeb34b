"""Project: separates the warehouses and roles of a tenant from those of other tenants."""

from collections.abc import Sequence
from typing import Annotated

import pulumi
from pulumi.dynamic import Resource
from typing_extensions import override

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, NotEmptyError, NotFoundError
from lakewright.lakekeeper.api.management import projects, warehouses
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.creation import created_or_found
from lakewright.lakekeeper.provider.diagnostics import note
from lakewright.lakekeeper.provider.inputs import CreateOnly, Deletable, Replace, StateOnly, Update
from lakewright.lakekeeper.provider.options import ServerInput, delete_first, given
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.names.types import Deletion, ProjectId, ProjectName


class ProjectArgs(Deletable):
    """Inputs of a project. The declaration sets its id, because names are not unique."""

    project_id: Annotated[ProjectId, Replace()]
    """Id of the project. The declaration sets it, because names are not unique."""
    name: Annotated[ProjectName, Update(via="rename")]
    """Display name."""
    kept_warehouses: Annotated[list[str] | None, StateOnly()] = None
    """Warehouses with `deletion: retain`. The project is kept while one of them exists."""
    adopt: Annotated[bool, CreateOnly()] = False
    """Take over an existing project of this id."""


class ProjectProvider(LakekeeperProvider[ProjectArgs]):
    """Creates, reads, renames and deletes projects."""

    args = ProjectArgs
    natural_key = ("project_id",)

    @override
    def title(self, declared: ProjectArgs) -> str:
        return f"project {declared.project_id} at {declared.server.endpoint}"

    @override
    def existing(self, client: Client, new: ProjectArgs) -> tuple[str, ObservedResource[ProjectArgs]] | None:
        name = projects.name_of(client, new.project_id)
        return None if name is None else (new.project_id, ObservedResource(new.model_copy(update={"name": name})))

    @override
    def contents(self, client: Client, object_id: str, new: ProjectArgs) -> str:
        names = sorted(str(warehouse["name"]) for warehouse in warehouses.list_all(client, object_id))
        return f"with warehouses: {', '.join(names)}" if names else ""

    @override
    def make(self, client: Client, new: ProjectArgs) -> tuple[str, ObservedResource[ProjectArgs]]:
        def create() -> str:
            projects.create(client, new.project_id, new.name)
            return new.name

        name, origin = created_or_found(create, lambda: projects.name_of(client, new.project_id))
        differs = "" if name == new.name else f"named `{name}`; declared is `{new.name}`"
        there = new.model_copy(update={"name": name})
        self.require_ours(client, there, new, origin, differs, object_id=new.project_id)
        if differs:
            projects.rename(client, new.project_id, new.name)
        return new.project_id, ObservedResource(new)

    @override
    def find(self, client: Client, known: RecordedResource[ProjectArgs]) -> ObservedResource[ProjectArgs] | None:
        name = projects.get_cached(client, known.id)
        return None if name is None else ObservedResource(known.declared.model_copy(update={"name": name}))

    @override
    def change(
        self, client: Client, known: RecordedResource[ProjectArgs], new: ProjectArgs
    ) -> ObservedResource[ProjectArgs]:
        projects.rename(client, known.id, new.name)
        return ObservedResource(new)

    @override
    def remove(self, client: Client, known: RecordedResource[ProjectArgs]) -> None:
        if known.declared.deletion == "retain":
            return
        retained = known.declared.kept_warehouses or []
        stays = f"{self.title(known.declared)} is kept: `deletion: retain` keeps its warehouse {', '.join(retained)}"
        try:
            if _has_any(client, known.id, retained):
                note(stays)
                return
            projects.delete(client, known.id)
        except NotFoundError:
            pass
        except NotEmptyError as refused:
            if (unlisted := client.server().unlisted) and retained:
                note(stays)
                return
            if unlisted:
                refused.add(f"Its contents may not be listed, since {unlisted}.")
            raise
        except ForbiddenError:
            if projects.name_of(client, known.id) is not None:
                raise


def _has_any(client: Client, project_id: str, names: list[str]) -> bool:
    """Return whether a warehouse of the project has one of the names."""
    if not names:
        return False
    wanted = {name.casefold() for name in names}
    return any(str(warehouse["name"]).casefold() in wanted for warehouse in warehouses.list_all(client, project_id))


class Project(Resource, module="lakekeeper", name="Project"):
    """A Lakekeeper project with a declared id. It is renamed in place."""

    project_id: pulumi.Output[str]
    name: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        project_id: pulumi.Input[str],
        name: pulumi.Input[str],
        deletion: pulumi.Input[Deletion] | None = None,
        kept_warehouses: pulumi.Input[Sequence[str]] | None = None,
        adopt: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource."""
        props = given(
            server=server,
            project_id=project_id,
            name=name,
            deletion=deletion,
            kept_warehouses=kept_warehouses,
            adopt=adopt or None,
        )
        super().__init__(ProjectProvider(), resource_name, props, delete_first(opts))
