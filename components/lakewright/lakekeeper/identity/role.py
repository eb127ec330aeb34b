"""Role: holds privileges within a project; users and other roles are its members."""

import contextlib
from typing import Annotated, Any, Self

import pulumi
from pulumi.dynamic import Resource
from pydantic import AfterValidator, Field, model_validator
from typing_extensions import override

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import AlreadyExistsError, ForbiddenError, NotFoundError
from lakewright.lakekeeper.api.management import project_record, projects, roles
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.creation import create_or_find, explain_unfinished
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError, NotOwnedError
from lakewright.lakekeeper.provider.inputs import CreateOnly, Replace, ResourceInputs, ServerKeeps, Since, Update
from lakewright.lakekeeper.provider.options import ServerInput, delete_first, drop_none
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.names.types import ProjectId, RoleProviderId
from lakewright.ownership.marked_object import MarkedObject
from lakewright.ownership.record_role import is_record_name


def _free_name(value: str) -> str:
    if is_record_name(value):
        raise ValueError(f"`{value}` is the record of the project's owner; choose another name")
    return value


class RoleArgs(ResourceInputs):
    """Inputs of a role."""

    project_id: Annotated[ProjectId, Replace()]
    """Project that the role belongs to."""
    name: Annotated[str, Field(min_length=1), AfterValidator(_free_name), Update(via="role")]
    """Name of the role, unique in its project. Case is ignored."""
    description: Annotated[str | None, Update(via="role"), ServerKeeps()] = None
    """Purpose of the role; empty for none."""
    provider_id: Annotated[RoleProviderId | None, Update(via="source-system"), ServerKeeps(), Since((0, 12))] = None
    """Identity provider whose role this role represents: lower-case letters, digits and `-`."""
    source_id: Annotated[
        str | None, Field(min_length=1), Update(via="source-system"), ServerKeeps(), Since((0, 12))
    ] = None
    """Id of the role at that provider."""
    adopt: Annotated[bool, CreateOnly()] = False
    """Take over an existing role of this name."""

    @model_validator(mode="after")
    def _source_is_whole(self) -> Self:
        if (self.provider_id is None) != (self.source_id is None):
            raise ValueError("`provider_id` and `source_id` go together")
        if self.provider_id == "system":
            raise ValueError("`provider_id` must not be `system`: the roles of `system` belong to Lakekeeper")
        return self

    @property
    def source(self) -> tuple[str, str] | None:
        """Return the role of an identity provider that this role represents."""
        return (self.provider_id, self.source_id) if self.provider_id and self.source_id else None


class RoleProvider(LakekeeperProvider[RoleArgs]):
    """Creates, reads, changes and deletes roles. The id is the server's."""

    args = RoleArgs
    natural_key = ("project_id", "name", "provider_id", "source_id")

    @override
    def title(self, args: RoleArgs) -> str:
        return f"role `{args.name}` of project {args.project_id} at {args.server.endpoint}"

    @override
    def find_marked(self, client: Client, args: RoleArgs) -> MarkedObject:
        """Return the project if it has a mark, else the role, whose description may be a mark in a shared project."""
        return project_record.find_marked_role(client, args.project_id, lambda: _there(client, args))

    @override
    def find_marked_in_state(self, client: Client, resource: RecordedResource[RoleArgs]) -> MarkedObject:
        """Return the project, or the role with the id in the state, which another stack may have renamed."""
        project_id = resource.declared.project_id
        return project_record.find_marked_role(
            client, project_id, lambda: roles.get_cached(client, project_id, resource.id)
        )

    @override
    def find_existing(self, client: Client, new: RoleArgs) -> tuple[str, ObservedResource[RoleArgs]] | None:
        try:
            role = _there(client, new)
        except (NotFoundError, ForbiddenError):
            if projects.read_name(client, new.project_id) is not None:
                raise
            return None  # the project does not exist yet
        return (str(role["id"]), _observe(role, new)) if role else None

    @override
    def make(self, client: Client, new: RoleArgs) -> tuple[str, ObservedResource[RoleArgs]]:
        role, origin = create_or_find(
            lambda: roles.create(client, new.project_id, _create_request(new)), lambda: _there(client, new)
        )
        live_args = _observe(role, new).declared
        changes = difference.list_changes(live_args, new)
        differs = f"with other {', '.join(change.path for change in changes)}" if changes else ""
        self.require_ours(client, live_args, new, origin, differs)
        with explain_unfinished(self.title(new), origin, adopts=new.adopt):
            return str(role["id"]), self._converge(client, role, new)

    @override
    def find(self, client: Client, resource: RecordedResource[RoleArgs]) -> ObservedResource[RoleArgs] | None:
        role = roles.get_cached(client, resource.declared.project_id, resource.id)
        return _observe(role, resource.declared) if role else None

    @override
    def change(self, client: Client, resource: RecordedResource[RoleArgs], new: RoleArgs) -> ObservedResource[RoleArgs]:
        role = roles.get(client, new.project_id, resource.id)
        if role is None:
            raise DeletedOutsideStackError(
                f"{self.title(resource.declared)} ({resource.id}) no longer exists. Run `up --refresh`."
            )
        return self._converge(client, role, new)

    @override
    def remove(self, client: Client, resource: RecordedResource[RoleArgs]) -> None:
        with contextlib.suppress(NotFoundError):
            roles.delete(client, resource.declared.project_id, resource.id)

    def _converge(self, client: Client, role: roles.RoleResponse, new: RoleArgs) -> ObservedResource[RoleArgs]:
        role_id = str(role["id"])
        calls = difference.via(difference.list_changes(_observe(role, new).declared, new))
        try:
            if "role" in calls:
                # An undeclared description must be sent as well, or the server removes it.
                description = role.get("description") if new.description is None else new.description
                roles.replace(client, new.project_id, role_id, new.name, description)
            if "source-system" in calls and new.source:
                roles.bind(client, new.project_id, role_id, *new.source)
        except AlreadyExistsError as taken:
            other = _there(client, new, but_not=role_id) or {}
            holder = f"role {other['id']} (`{other['name']}`) has that name or source" if other else str(taken)
            raise NotOwnedError(
                f"role {role_id} of project {new.project_id} at {client.endpoint} cannot become `{new.name}`: {holder}."
                " Choose another."
            ) from None
        after = (roles.get(client, new.project_id, role_id) or role) if "source-system" in calls else role
        return ObservedResource(new, _compute_outputs(after))


def _create_request(new: RoleArgs) -> dict[str, Any]:
    body = {
        "name": new.name,
        "description": new.description or None,
        "provider-id": new.provider_id,
        "source-id": new.source_id,
    }
    return {key: value for key, value in body.items() if value is not None}


def _there(client: Client, new: RoleArgs, but_not: str = "") -> roles.RoleResponse | None:
    """Return the role with the declared source, else the role with the name."""
    candidates = [roles.find_by_source(client, new.project_id, *new.source)] if new.source else []
    candidates.append(roles.find_by_name(client, new.project_id, new.name))
    return next((role for role in candidates if role and role["id"] != but_not), None)


def _observe(role: roles.RoleResponse, args: RoleArgs) -> ObservedResource[RoleArgs]:
    """Return the server's response in the terms of a declaration."""
    response: dict[str, Any] = {"name": role["name"]}
    if args.description is not None:
        response["description"] = role.get("description") or ""
    if args.source:
        response |= {"provider_id": role.get("provider-id"), "source_id": role.get("source-id")}
    return ObservedResource(args.model_copy(update=response), _compute_outputs(role))


def _compute_outputs(role: roles.RoleResponse) -> dict[str, Any]:
    return {"ident": role.get("ident")}


class Role(Resource, module="lakekeeper", name="Role"):
    """A role of a project. It may represent a role (`source_id`) of an identity provider (`provider_id`).

    If the description is not declared, the server's is kept. An empty description removes it.
    """

    project_id: pulumi.Output[str]
    name: pulumi.Output[str]
    description: pulumi.Output[str | None]
    ident: pulumi.Output[str | None]
    """`PROVIDER~SOURCE`; None on servers before 0.12."""

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        project_id: pulumi.Input[str],
        name: pulumi.Input[str],
        description: pulumi.Input[str] | None = None,
        provider_id: pulumi.Input[str] | None = None,
        source_id: pulumi.Input[str] | None = None,
        adopt: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            project_id: Project that the role belongs to.
            name: Name of the role, unique in its project. Case is ignored.
            description: Purpose of the role; empty for none.
            provider_id: Identity provider whose role this role represents: lower-case letters, digits and `-`.
            source_id: Id of the role at that provider.
            adopt: Take over an existing role of this name.
            opts: Options of the resource.
        """
        props = drop_none(
            server=server,
            project_id=project_id,
            name=name,
            description=description,
            provider_id=provider_id,
            source_id=source_id,
            adopt=adopt or None,
        )
        super().__init__(RoleProvider(), resource_name, {**props, "ident": None}, delete_first(opts))

    @property
    def role_id(self) -> pulumi.Output[str]:
        """Id of the role on the server."""
        return self.id
