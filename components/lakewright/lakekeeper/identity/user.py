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
from lakewright.lakekeeper.provider.creation import Origin, created_or_found
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError
from lakewright.lakekeeper.provider.inputs import CreateOnly, Replace, ResourceInputs, ServerKeeps, Update
from lakewright.lakekeeper.provider.options import ServerInput, delete_first, given
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

    def properties(self, found: users.UserResponse | None = None) -> dict[str, Any]:
        """Return all properties to send. The server removes omitted ones, so undeclared ones are sent as found."""
        email = (found or {}).get("email") if self.email is None else self.email
        return {"name": self.name, "user-type": self.user_type} | ({"email": email} if email else {})


class UserProvider(LakekeeperProvider[UserArgs]):
    """Provisions, reads, changes and deletes users."""

    args = UserArgs
    natural_key = ("user_id",)

    @override
    def title(self, declared: UserArgs) -> str:
        return f"user `{declared.user_id}` at {declared.server.endpoint}"

    @override
    def existing(self, client: Client, new: UserArgs) -> tuple[str, ObservedResource[UserArgs]] | None:
        found = None if new.may_exist else users.get(client, new.user_id)
        return (new.user_id, ObservedResource(_observed(found, new))) if found else None

    @override
    def make(self, client: Client, new: UserArgs) -> tuple[str, ObservedResource[UserArgs]]:
        try:
            found, origin = created_or_found(
                lambda: users.create(client, new.user_id, new.properties()),
                lambda: users.get(client, new.user_id),
            )
        except AlreadyExistsError:  # the id belongs to a deleted user: none was found
            found, origin = users.restore(client, new.user_id, new.properties()), Origin.CREATED
        there = _observed(found, new)
        changes = ", ".join(change.path for change in difference.between(there, new))
        differs = f"with other {changes} (servers add users at their first request)" if changes else ""
        if not new.may_exist:
            self.require_ours(client, there, new, origin, differs)
        if changes:
            users.replace(client, new.user_id, new.properties(found))
        return new.user_id, ObservedResource(new)

    @override
    def find(self, client: Client, known: RecordedResource[UserArgs]) -> ObservedResource[UserArgs] | None:
        found = users.get_cached(client, known.id)
        return ObservedResource(_observed(found, known.declared)) if found else None

    @override
    def change(self, client: Client, known: RecordedResource[UserArgs], new: UserArgs) -> ObservedResource[UserArgs]:
        found = users.get(client, known.id)
        if found is None:
            raise DeletedOutsideStackError(f"{self.title(known.declared)} does not exist any more. Run `up --refresh`.")
        users.replace(client, known.id, new.properties(found))
        return ObservedResource(new)

    @override
    def remove(self, client: Client, known: RecordedResource[UserArgs]) -> None:
        with contextlib.suppress(NotFoundError):
            users.delete(client, known.id)


def _observed(found: users.UserResponse, declared: UserArgs) -> UserArgs:
    """Return the server's response in the terms of a declaration."""
    response = {"name": found["name"], "user_type": found["user-type"]}
    if declared.email is not None:
        response["email"] = found.get("email") or ""
    return declared.model_copy(update=response)


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
        """Declare the resource."""
        props = given(
            server=server,
            user_id=user_id,
            name=name,
            user_type=user_type,
            email=email,
            adopt=adopt or None,
            may_exist=may_exist or None,
        )
        super().__init__(UserProvider(), resource_name, props, delete_first(opts))
