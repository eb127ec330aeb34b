"""User: a person or application that privileges are granted to, known to the whole server."""

import contextlib
from typing import Annotated, Any, Literal

import pulumi
from pulumi.dynamic import Resource
from pydantic import Field
from typing_extensions import override

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import AlreadyExistsError, NotFoundError
from lakewright.lakekeeper.api.management import users
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.creation import create_or_find, explain_unfinished
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError
from lakewright.lakekeeper.provider.inputs import CreateOnly, Replace, ResourceInputs, ServerKeeps, Update
from lakewright.lakekeeper.provider.options import ServerInput, delete_first, drop_none
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.names.types import UserId

UserType = Literal["human", "application"]


class UserArgs(ResourceInputs):
    """Inputs of a user."""

    user_id: Annotated[UserId, Replace()]
    """Id in the identity provider's tokens: `oidc~SUBJECT` or `kubernetes~UID`."""
    name: Annotated[str, Field(min_length=1), Update(via="user")]
    """Display name."""
    user_type: Annotated[UserType, Update(via="user")]
    """Kind of user: a person or an application."""
    email: Annotated[str | None, Update(via="user"), ServerKeeps()] = None
    """E-mail address; empty for none."""
    adopt: Annotated[bool, CreateOnly()] = False
    """Take over an existing user. Servers add users at their first request."""
    may_exist: Annotated[bool, CreateOnly()] = False
    """Take over the user without `adopt`. For a service account: no other has its uid, and the server may have added
    it at its first request."""

    def properties(self, user: users.UserResponse | None = None) -> dict[str, Any]:
        """Return all properties to send. The server removes omitted properties, so the live values are sent too."""
        email = (user or {}).get("email") if self.email is None else self.email
        return {"name": self.name, "user-type": self.user_type} | ({"email": email} if email else {})


class UserProvider(LakekeeperProvider[UserArgs]):
    """Provisions, reads, changes and deletes users."""

    args = UserArgs
    natural_key = ("user_id",)

    @override
    def title(self, args: UserArgs) -> str:
        return f"user `{args.user_id}` at {args.server.endpoint}"

    @override
    def find_existing(self, client: Client, new: UserArgs) -> tuple[str, ObservedResource[UserArgs]] | None:
        user = None if new.may_exist else users.get(client, new.user_id)
        return (new.user_id, ObservedResource(_observe(user, new))) if user else None

    @override
    def make(self, client: Client, new: UserArgs) -> tuple[str, ObservedResource[UserArgs]]:
        try:
            user, origin = create_or_find(
                lambda: users.create(client, new.user_id, new.properties()),
                lambda: users.get(client, new.user_id),
            )
        except AlreadyExistsError:  # the id belongs to a deleted user: none was found
            user, origin = create_or_find(
                lambda: users.restore(client, new.user_id, new.properties()),
                lambda: users.get(client, new.user_id),
            )
        live_args = _observe(user, new)
        changes = ", ".join(change.path for change in difference.list_changes(live_args, new))
        differs = f"with other {changes} (servers add users at their first request)" if changes else ""
        if not new.may_exist:
            self.require_ours(client, live_args, new, origin, differs)
        if changes:
            with explain_unfinished(self.title(new), origin, adopts=new.adopt or new.may_exist):
                users.replace(client, new.user_id, new.properties(user))
        return new.user_id, ObservedResource(new)

    @override
    def find(self, client: Client, resource: RecordedResource[UserArgs]) -> ObservedResource[UserArgs] | None:
        user = users.get_cached(client, resource.id)
        return ObservedResource(_observe(user, resource.declared)) if user else None

    @override
    def change(self, client: Client, resource: RecordedResource[UserArgs], new: UserArgs) -> ObservedResource[UserArgs]:
        user = users.get(client, resource.id)
        if user is None:
            raise DeletedOutsideStackError(f"{self.title(resource.declared)} no longer exists. Run `up --refresh`.")
        users.replace(client, resource.id, new.properties(user))
        return ObservedResource(new)

    @override
    def remove(self, client: Client, resource: RecordedResource[UserArgs]) -> None:
        with contextlib.suppress(NotFoundError):
            users.delete(client, resource.id)


def _observe(user: users.UserResponse, args: UserArgs) -> UserArgs:
    """Return the server's response in the terms of a declaration."""
    response = {"name": user["name"], "user_type": user["user-type"]}
    if args.email is not None:
        response["email"] = user.get("email") or ""
    return args.model_copy(update=response)


class User(Resource, module="lakekeeper", name="User"):
    """A user, under the id in the identity provider's tokens: `oidc~SUBJECT`, `kubernetes~UID`.

    If the email is not declared, the server's is kept. An empty email removes it.
    """

    user_id: pulumi.Output[str]
    name: pulumi.Output[str]
    user_type: pulumi.Output[str]
    email: pulumi.Output[str | None]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        user_id: pulumi.Input[str],
        name: pulumi.Input[str],
        user_type: pulumi.Input[UserType],
        email: pulumi.Input[str] | None = None,
        adopt: bool = False,
        may_exist: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            user_id: Id in the identity provider's tokens: `oidc~SUBJECT` or `kubernetes~UID`.
            name: Display name.
            user_type: Kind of user: a person or an application.
            email: E-mail address; empty for none.
            may_exist: Take over the user without `adopt`. For a service account: no other has its uid, and the server
                may have added it at its first request.
            adopt: Take over an existing user. Servers add users at their first request.
            opts: Options of the resource.
        """
        props = drop_none(
            server=server,
            user_id=user_id,
            name=name,
            user_type=user_type,
            email=email,
            adopt=adopt or None,
            may_exist=may_exist or None,
        )
        super().__init__(UserProvider(), resource_name, props, delete_first(opts))
