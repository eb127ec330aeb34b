"""RoleMembers: all members of a role."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Self

import pulumi
from pulumi.dynamic import CheckResult, Resource
from pydantic import AfterValidator, model_validator
from typing_extensions import override

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import AlreadyExistsError
from lakewright.lakekeeper.api.connection.privileges import ASSIGNEE, GrantEntry
from lakewright.lakekeeper.api.management import members, project_record, roles, users
from lakewright.lakekeeper.api.management.members import Member
from lakewright.lakekeeper.grants.entry import claim_place, place_of_members
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError, NotOwnedError
from lakewright.lakekeeper.provider.inputs import CreateOnly, Replace, ResourceInputs, StateOnly, Update, has_unknown
from lakewright.lakekeeper.provider.options import ServerInput, delete_first, drop_none
from lakewright.lakekeeper.provider.ownership_conflicts import Claim
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.names.types import ProjectId, RoleId, UserId
from lakewright.ownership.marked_object import MarkedObject
from lakewright.validation.moment import has_ended


def _each_once(ids: list[str]) -> list[str]:
    return sorted(set(ids))


class RoleMembersArgs(ResourceInputs):
    """Inputs for the members of a role."""

    project_id: Annotated[ProjectId, Replace()]
    """Project that the role belongs to."""
    role_id: Annotated[RoleId, Replace()]
    """Id of the role."""
    users: Annotated[list[UserId], AfterValidator(_each_once), Update(via="members")] = []
    """Ids of the users that are members."""
    roles: Annotated[list[RoleId], AfterValidator(_each_once), Update(via="members")] = []
    """Ids of the roles that are members."""
    names: Annotated[dict[UserId, str], CreateOnly()] = {}
    """Display names of members by user id. A member with a name whom the server does not know is registered; such
    users remain when the resource is destroyed, as other projects may have them as members."""
    until: Annotated[dict[UserId, str] | None, Update(via="members")] = None
    """Times at which memberships end by user id, RFC 3339, UTC. From then on, a missing member is no drift. The program
    stops declaring the member then."""
    declared_as: Annotated[str, StateOnly()] = ""
    adopt: Annotated[bool, CreateOnly()] = False
    """Take over a role that has other members. They are removed."""

    @model_validator(mode="after")
    def _not_itself(self) -> Self:
        if not has_unknown([self.roles, self.role_id]) and self.role_id in self.roles:
            raise ValueError("a role cannot be a member of itself")
        return self

    @property
    def members(self) -> frozenset[Member]:
        """Return the users and roles together."""
        return frozenset([*(("user", user) for user in self.users), *(("role", role) for role in self.roles)])

    def list_ended(self, now: datetime) -> set[str]:
        """Return the users whose memberships have ended."""
        ends = self.until or {}
        return {user for user in self.users if has_ended(ends.get(user), now)}

    @property
    def claim(self) -> Claim:
        """Return what the resource claims."""
        unknown = has_unknown([self.users, self.roles])
        entries = (
            frozenset[GrantEntry]() if unknown else frozenset(GrantEntry(ASSIGNEE, *member) for member in self.members)
        )
        return Claim("RoleMembers", self.declared_as, entries)


class RoleMembersProvider(LakekeeperProvider[RoleMembersArgs]):
    """Adds and removes members of a role until they match the declaration. The id is the role's."""

    args = RoleMembersArgs
    natural_key = ("project_id", "role_id")
    belongs_to_maker = False

    @override
    def title(self, args: RoleMembersArgs) -> str:
        return f"role {args.role_id} of project {args.project_id} at {args.server.endpoint}"

    @override
    def find_marked(self, client: Client, args: RoleMembersArgs) -> MarkedObject:
        """Return the project if it has a mark, else the role, whose description may be a mark in a shared project."""
        return project_record.find_marked_role(
            client, args.project_id, lambda: roles.get_cached(client, args.project_id, args.role_id)
        )

    @override
    def find_existing(
        self, client: Client, new: RoleMembersArgs
    ) -> tuple[str, ObservedResource[RoleMembersArgs]] | None:
        live_members = members.list_members(client, new.project_id, new.role_id)
        return (new.role_id, ObservedResource(_observe(live_members, new))) if live_members else None

    @override
    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        result = super().check(_olds, news)
        if result.failures:
            return result
        args = self.args.parse(result.inputs)
        return claim_place(self.run.claims, result, place_of_members(args.server, args.role_id), args.claim, "role_id")

    @override
    def make(self, client: Client, new: RoleMembersArgs) -> tuple[str, ObservedResource[RoleMembersArgs]]:
        live_members = self._members(client, new)
        if (undeclared := live_members - new.members) and not new.adopt:
            raise NotOwnedError(
                f"{self.title(new)} has members that are not declared: {_format_members(undeclared)}. Declare"
                " them, or remove"
                " them with `adopt=True`."
            )
        return new.role_id, self._converge(client, live_members, new)

    @override
    def find(
        self, client: Client, resource: RecordedResource[RoleMembersArgs]
    ) -> ObservedResource[RoleMembersArgs] | None:
        live_members = members.list_members(client, resource.declared.project_id, resource.declared.role_id)
        return None if live_members is None else ObservedResource(_observe(live_members, resource.declared))

    @override
    def change(
        self, client: Client, resource: RecordedResource[RoleMembersArgs], new: RoleMembersArgs
    ) -> ObservedResource[RoleMembersArgs]:
        return self._converge(client, self._members(client, new), new)

    @override
    def redeclare(self, recorded_args: RoleMembersArgs, live_args: RoleMembersArgs) -> RoleMembersArgs:
        """Leave out members that are missing since their end has come."""
        removed = recorded_args.list_ended(self.run.clock()) - {*live_args.users}
        if not removed:
            return recorded_args
        return recorded_args.model_copy(update={"users": [u for u in recorded_args.users if u not in removed]})

    @override
    def remove_ended(self, id_: str, outs: dict[str, Any]) -> list[str]:
        state = self.args.from_state(outs)
        ended = state.list_ended(self.run.clock())
        if not ended:
            return []
        client = self._connect_verified(state, outs)
        live_members = members.list_members(client, state.project_id, state.role_id) or frozenset[Member]()
        removed = sorted(member for member in live_members if member[0] == "user" and member[1] in ended)
        if removed:
            self._refuse_foreign(lambda: [self.find_marked(client, state)], MarkedObject.find_change_problem, outs)
            members.change(client, state.project_id, state.role_id, [], removed)
        return [f"user {user}" for _, user in removed]

    @override
    def remove(self, client: Client, resource: RecordedResource[RoleMembersArgs]) -> None:
        state = resource.declared
        key = place_of_members(state.server, state.role_id)
        handed_over = {(entry.kind, entry.principal) for entry in self.run.claims.entries_of_others(key, state.claim)}
        live_members = members.list_members(client, state.project_id, state.role_id)
        if live_members is not None:
            members.change(client, state.project_id, state.role_id, [], live_members & state.members - handed_over)

    def _members(self, client: Client, args: RoleMembersArgs) -> frozenset[Member]:
        live_members = members.list_members(client, args.project_id, args.role_id)
        if live_members is None:
            raise DeletedOutsideStackError(
                f"{self.title(args)} does not exist. If it existed before, run `up --refresh`."
            )
        return live_members

    def _converge(
        self, client: Client, live_members: frozenset[Member], new: RoleMembersArgs
    ) -> ObservedResource[RoleMembersArgs]:
        added = new.members - live_members
        for kind, member in sorted(added):
            if kind == "user" and member in new.names and users.get(client, member) is None:
                _register(client, member, new.names[member])
        members.change(client, new.project_id, new.role_id, added, live_members - new.members)
        return ObservedResource(new)


def _register(client: Client, user_id: str, name: str) -> None:
    """Make a person known to the server, as their first login would."""
    properties = {"name": name, "user-type": "human"}
    try:
        users.create(client, user_id, properties)
    except AlreadyExistsError:  # the id belongs to a deleted user, or another stack registered the person just now
        users.restore(client, user_id, properties)


def _observe(live_members: frozenset[Member], args: RoleMembersArgs) -> RoleMembersArgs:
    """Return the server's members in the terms of a declaration."""
    return args.model_copy(
        update={
            "users": sorted(member for kind, member in live_members if kind == "user"),
            "roles": sorted(member for kind, member in live_members if kind == "role"),
        }
    )


def _format_members(some: frozenset[Member]) -> str:
    return ", ".join(f"{kind} {member}" for kind, member in sorted(some))


class RoleMembers(Resource, module="lakekeeper", name="RoleMembers"):
    """All members of a role. Other members are drift and are removed. Declare at most one for a role."""

    project_id: pulumi.Output[str]
    role_id: pulumi.Output[str]
    users: pulumi.Output[list[str]]
    roles: pulumi.Output[list[str]]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        project_id: pulumi.Input[str],
        role_id: pulumi.Input[str],
        users: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        roles: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        names: Mapping[str, pulumi.Input[str]] | None = None,
        until: pulumi.Input[Mapping[str, str] | None] | None = None,
        adopt: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            project_id: Project that the role belongs to.
            role_id: Id of the role.
            users: Ids of the users that are members.
            roles: Ids of the roles that are members.
            names: Display names of members by user id. A member with a name whom the server does not know is
                registered; such users remain when the resource is destroyed, as other projects may have them as
                members.
            until: Times at which memberships end by user id, RFC 3339, UTC. From then on, a missing member is no drift.
                The program stops declaring the member then.
            adopt: Take over a role that has other members. They are removed.
            opts: Options of the resource.
        """
        role = {"type": "role", "project_id": project_id, "role_id": role_id}
        run_context.current().declarations.add(Claim("RoleMembers", resource_name), role, ASSIGNEE)
        props = drop_none(
            server=server,
            project_id=project_id,
            role_id=role_id,
            users=users,
            roles=roles,
            names=names or None,
            until=until,
            declared_as=resource_name,
            adopt=adopt or None,
        )
        super().__init__(RoleMembersProvider(), resource_name, props, delete_first(opts))
