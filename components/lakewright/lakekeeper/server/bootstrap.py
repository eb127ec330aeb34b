"""Bootstrap: the initial setup of a Lakekeeper server, which happens once."""

from typing import Annotated, Literal

import pulumi
from pulumi.dynamic import Resource
from pydantic import AfterValidator
from typing_extensions import override

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.versions import Server
from lakewright.lakekeeper.api.management import projects
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.inputs import CreateOnly, ResourceInputs
from lakewright.lakekeeper.provider.options import ServerInput, drop_none, not_imported
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource


def _require_acceptance(value: object) -> object:
    if not value:
        raise ValueError("must be true: a server is not bootstrapped without accepting Lakekeeper's terms of use")
    return value


class BootstrapArgs(ResourceInputs):
    """Inputs of a bootstrap. They are used only once."""

    accept_terms_of_use: Annotated[bool, AfterValidator(_require_acceptance), CreateOnly()]
    """Must be true: accept Lakekeeper's terms of use."""
    is_operator: Annotated[bool, CreateOnly()] = False
    """Whether the bootstrapping identity becomes an operator instead of an administrator of the server."""
    user_name: Annotated[str | None, CreateOnly()] = None
    """Name of the identity, if its token has none."""
    user_email: Annotated[str | None, CreateOnly()] = None
    """E-mail address of the identity, if its token has none."""
    user_type: Annotated[Literal["human", "application"] | None, CreateOnly()] = None
    """Type of the identity: a person or a service."""


class BootstrapProvider(LakekeeperProvider[BootstrapArgs]):
    """Bootstraps a server that is not bootstrapped yet. This cannot be undone, so deleting does nothing."""

    args = BootstrapArgs

    @override
    def make(self, client: Client, new: BootstrapArgs) -> tuple[str, ObservedResource[BootstrapArgs]]:
        server = client.server_now()
        if not server.bootstrapped:
            body = new.model_dump(exclude_none=True, exclude={"server"})
            projects.bootstrap(client, {key.replace("_", "-"): value for key, value in body.items()})
            server = client.server_now()
        return server.server_id, _observe(new, server)

    @override
    def find(self, client: Client, resource: RecordedResource[BootstrapArgs]) -> ObservedResource[BootstrapArgs] | None:
        server = client.lists.get_cached((client.identity, "info"), client.server_now)
        return _observe(resource.declared, server) if server.bootstrapped else None

    @override
    def change(
        self, client: Client, resource: RecordedResource[BootstrapArgs], new: BootstrapArgs
    ) -> ObservedResource[BootstrapArgs]:
        return _observe(new, client.server_now())

    @override
    def remove(self, client: Client, resource: RecordedResource[BootstrapArgs]) -> None:
        """Do nothing: a bootstrap cannot be undone."""


def _observe(args: BootstrapArgs, server: Server) -> ObservedResource[BootstrapArgs]:
    computed = {"default_project_id": server.default_project_id, "authz_backend": server.authz_backend}
    return ObservedResource(args, computed)


class Bootstrap(Resource, module="lakekeeper", name="Bootstrap"):
    """The bootstrap of a server. A server that is already bootstrapped is left unchanged."""

    default_project_id: pulumi.Output[str | None]
    authz_backend: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        accept_terms_of_use: pulumi.Input[bool],
        is_operator: pulumi.Input[bool] | None = None,
        user_name: pulumi.Input[str] | None = None,
        user_email: pulumi.Input[str] | None = None,
        user_type: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            accept_terms_of_use: Must be true: accept Lakekeeper's terms of use.
            is_operator: Whether the bootstrapping identity becomes an operator instead of an administrator of the
                server.
            user_name: Name of the identity, if its token has none.
            user_email: E-mail address of the identity, if its token has none.
            user_type: Type of the identity: a person or a service.
            opts: Options of the resource.
        """
        props = drop_none(
            server=server,
            accept_terms_of_use=accept_terms_of_use,
            is_operator=is_operator,
            user_name=user_name,
            user_email=user_email,
            user_type=user_type,
        )
        computed = {"default_project_id": None, "authz_backend": None}
        super().__init__(BootstrapProvider(), resource_name, {**props, **computed}, not_imported(opts))

    @property
    def server_id(self) -> pulumi.Output[str]:
        """Id of the server, which the server generated."""
        return self.id
