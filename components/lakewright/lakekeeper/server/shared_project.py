"""SharedProject: a project of several tenants, which a stack finds, and never creates, changes or deletes."""

from typing import Annotated, Any

import pulumi
from pulumi.dynamic import Resource
from typing_extensions import override

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.lakekeeper.api.management import project_record, projects
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.errors import NotOwnedError
from lakewright.lakekeeper.provider.inputs import Replace, ResourceInputs, has_unknown
from lakewright.lakekeeper.provider.options import ServerInput, drop_none, not_imported
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.names.types import ProjectId


class SharedProjectArgs(ResourceInputs):
    """Inputs of a shared project."""

    project_id: Annotated[ProjectId, Replace()]
    """Id of the project, which must exist."""


class SharedProjectProvider(LakekeeperProvider[SharedProjectArgs]):
    """Finds a project. Nothing that it does changes the server."""

    args = SharedProjectArgs
    belongs_to_maker = False

    @override
    def title(self, args: SharedProjectArgs) -> str:
        return f"project {args.project_id} at {args.server.endpoint}"

    @override
    def complete_args(self, args: SharedProjectArgs, olds: dict[str, Any]) -> SharedProjectArgs:
        """Refuse a project that does not exist or that one stack owns, in previews too."""
        if not has_unknown([args.server, args.project_id]):
            try:
                client = self.client(args.server)
                if client.server().bootstrapped:  # the bootstrap creates the default project
                    self._require_shared(client, args)
            except NotOwnedError:
                raise
            except (LakekeeperError, UnresolvedCredentialError) as error:
                warn(f"could not check that {self.title(args)} exists: {error}")
        return args

    @override
    def make(self, client: Client, new: SharedProjectArgs) -> tuple[str, ObservedResource[SharedProjectArgs]]:
        self._require_shared(client, new)
        return new.project_id, ObservedResource(new)

    @override
    def find(
        self, client: Client, resource: RecordedResource[SharedProjectArgs]
    ) -> ObservedResource[SharedProjectArgs] | None:
        exists = projects.get_cached(client, resource.id) is not None
        return ObservedResource(resource.declared) if exists else None

    @override
    def change(
        self, client: Client, resource: RecordedResource[SharedProjectArgs], new: SharedProjectArgs
    ) -> ObservedResource[SharedProjectArgs]:
        return ObservedResource(new)

    @override
    def remove(self, client: Client, resource: RecordedResource[SharedProjectArgs]) -> None:
        """Leave the project as it is."""

    def _require_shared(self, client: Client, args: SharedProjectArgs) -> None:
        """Raise NotOwnedError if the project does not exist, or if a stack owns all of it."""
        if projects.read_name(client, args.project_id) is None:
            raise NotOwnedError(
                f"{self.title(args)} does not exist, and a stack never creates a project with `shared: true`. Create"
                " the project, or remove `shared`: the stack then has a project of its own."
            )
        mark = project_record.read_cached_mark(client, args.project_id)
        if mark.names_owner:
            raise NotOwnedError(
                f"{self.title(args)} cannot be shared: it belongs to stack `{mark.stack or mark.record}`, whose tenant"
                " has it alone. Use another project, or give that tenant a project of its own."
            )


class SharedProject(Resource, module="lakekeeper", name="SharedProject"):
    """A Lakekeeper project of several tenants. A stack finds it, and never creates, changes or deletes it."""

    project_id: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        project_id: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            project_id: Id of the project, which must exist.
            opts: Options of the resource.
        """
        props = drop_none(server=server, project_id=project_id)
        super().__init__(SharedProjectProvider(), resource_name, props, not_imported(opts))
