"""Grant: one privilege of one user or role on one object. Ignores all other grants."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Self

import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, Resource
from pydantic import model_validator
from typing_extensions import override

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import ForbiddenError, LakekeeperError, NotFoundError
from lakewright.lakekeeper.api.connection.privileges import ASSIGNEE, GrantEntry, Object
from lakewright.lakekeeper.api.management import grants, limit_records
from lakewright.lakekeeper.grants import former_object
from lakewright.lakekeeper.grants import target as grant_target
from lakewright.lakekeeper.grants.entry import (
    DeclaredGrant,
    Privilege,
    claim_place,
    exactly_one,
    explain_unsupported,
    make_claim_key,
    place_of_members,
)
from lakewright.lakekeeper.grants.target import GrantTarget, OnRole
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.diagnostics import warn, warn_of_unenforced_grants
from lakewright.lakekeeper.provider.errors import InactiveWarehouseError
from lakewright.lakekeeper.provider.inputs import (
    Declared,
    Replace,
    ResourceInputs,
    StateOnly,
    Update,
    has_unknown,
)
from lakewright.lakekeeper.provider.options import ServerInput, delete_first, drop_none
from lakewright.lakekeeper.provider.ownership_conflicts import Claim, ClaimKey
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.lakekeeper.provider.run_context import Taking
from lakewright.names.types import ProjectId, RoleId, UserId
from lakewright.ownership import record_identity
from lakewright.ownership.limit_mark import LimitMark, SuspendedGrant
from lakewright.ownership.marked_object import MarkedObject
from lakewright.validation.moment import has_ended


class LimitedBy(Declared):
    """The limits whose enforcement suspends a grant."""

    project_id: ProjectId
    """Project in which the enforcement is recorded."""
    parts: list[str]
    """Parts of the tenant with these limits, such as `warehouse executions`."""


class GrantArgs(ResourceInputs):
    """Inputs of a grant. The server cannot change a grant, so each change replaces it."""

    on: Annotated[GrantTarget, Replace()]
    """The object."""
    privilege: Annotated[Privilege, Replace()]
    """The privilege, in the terms of the server's authorizer."""
    user: Annotated[UserId | None, Replace()] = None
    """Id of the user who receives it."""
    role: Annotated[RoleId | None, Replace()] = None
    """Id of the role that receives it."""
    declared_as: Annotated[str, StateOnly()] = ""
    until: Annotated[str | None, Update(via="grants")] = None
    """Time from which a missing grant is no drift, RFC 3339, UTC. The program stops declaring the grant then."""
    limited_by: Annotated[LimitedBy | None, Update(via="grants")] = None
    """Limits whose enforcement suspends the grant while they are reached."""

    @model_validator(mode="after")
    def _one_principal(self) -> Self:
        exactly_one(self.user, self.role)
        return self

    @property
    def held(self) -> GrantEntry:
        """Return the grant as the server stores it."""
        return DeclaredGrant(privilege=self.privilege, user=self.user, role=self.role).held

    @property
    def place(self) -> ClaimKey:
        """Return the place of its claim. Membership in a role is claimed where `RoleMembers` claims it."""
        if isinstance(self.on, OnRole) and self.privilege == ASSIGNEE:
            return place_of_members(self.server, self.on.role_id)
        return make_claim_key(self.server, self.on)

    @property
    def claim(self) -> Claim:
        """Return the subject and privilege that the resource claims."""
        unknown = has_unknown([self.privilege, self.user, self.role])
        return Claim("Grant", self.declared_as, frozenset() if unknown else frozenset({self.held}), self.on)


class GrantProvider(LakekeeperProvider[GrantArgs]):
    """Grants and revokes a privilege. The id is the text of the grant."""

    args = GrantArgs
    may_be_on_foreign_objects = True

    @override
    def find_marked(self, client: Client, args: GrantArgs) -> MarkedObject | None:
        return grant_target.find_marked(client, args.on)

    @override
    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        result = super().check(_olds, news)
        if result.failures:
            return result
        args = self.args.parse(result.inputs)
        if reason := "" if "server" in _olds else explain_unsupported(self, args.server, args.on):
            return CheckResult(news, [CheckFailure("on", reason)])
        if "server" not in _olds and self.run.own_objects.adopts:
            self._note_existing(args)
        return claim_place(self.run.claims, result, args.place, args.claim, "on")

    def _note_existing(self, args: GrantArgs) -> None:
        """Count a grant for the summary of an adoption: an existing grant is kept as it is."""
        if has_unknown([args.server, args.on, args.privilege, args.user, args.role]):
            return
        try:
            client = self.client(args.server)
            on = grant_target.resolve(client, args.on)
            live_grants = grants.get_cached(client, on) if on else None
        except (LakekeeperError, UnresolvedCredentialError):
            return  # `up` reports it
        taking = Taking.UNCHANGED if live_grants and args.held in live_grants else Taking.CREATED
        key = (self.kind, args.server.endpoint, str(args.on), str(args.held))
        self.run.own_objects.note_compared(key, taking)

    @override
    def make(self, client: Client, new: GrantArgs) -> tuple[str, ObservedResource[GrantArgs]]:
        on = self._grant(client, new)
        warn_of_unenforced_grants(client.server(), f"{new.privilege} on {new.on}")
        grant_id = f"{new.on}/{new.held.privilege}/{new.held.kind}:{new.held.principal}"
        return grant_id, ObservedResource(new, former_object.to_record(on))

    @override
    def find(self, client: Client, resource: RecordedResource[GrantArgs]) -> ObservedResource[GrantArgs] | None:
        state = resource.declared
        try:
            on = grant_target.resolve(client, state.on)
        except InactiveWarehouseError as hidden:
            warn(f"{hidden}")
            return ObservedResource(state, former_object.copy_record(resource.outs), hidden.warehouse_id)
        former = former_object.find_former(client, state.on, on, resource.outs)
        if former is not None and _is_granted(client, former, state):
            drift = former_object.describe_drift(former, state.on)
            return ObservedResource(state, {**former_object.to_record(former), "drift": [drift]})
        if on is not None and (_is_granted(client, on, state) or self._is_suspended(client, resource)):
            return ObservedResource(state, former_object.to_record(on))
        return None

    @override
    def change(
        self, client: Client, resource: RecordedResource[GrantArgs], new: GrantArgs
    ) -> ObservedResource[GrantArgs]:
        # A later end renews a grant that was revoked at its end. Without limits, a suspended grant is granted again.
        on = self._grant(client, new)
        self._revoke_former(client, resource, on)
        return ObservedResource(new, former_object.to_record(on))

    def _grant(self, client: Client, new: GrantArgs) -> Object:
        """Grant the privilege, and return the object.

        While its limit is enforced, record the grant among the suspended grants instead.
        """
        on = grant_target.require(client, new.on)
        if not self._suspend(client, new, SuspendedGrant(str(new.on), on.identity, *_list_parts(new))):
            grants.add(client, on, new.held)
        return on

    def _suspend(self, client: Client, new: GrantArgs, entry: SuspendedGrant) -> bool:
        """Record a declared grant as suspended. Return False if none of its limits is enforced."""
        if not _covers(self._find_cached_mark(client, new, {}), new):
            return False
        limited_by, record_id = new.limited_by, self.run.record_id
        if limited_by is None or record_id is None:
            return False
        with self.run.limit_lock:
            mark = limit_records.find_mark(client, limited_by.project_id, record_id)
            if mark is None or not mark.covers(limited_by.parts):
                return False
            if entry not in mark.suspended:
                mark = replace(mark, suspended=(*mark.suspended, entry))
                limit_records.write_mark(client, limited_by.project_id, record_id, mark)
        warn(
            f"`{new.privilege}` on {new.on} is not granted to {new.held.kind} {new.held.principal} yet: a limit of"
            f" {' and '.join(part for part in limited_by.parts if part in mark.parts)} is reached. `lakewright"
            " enforce-limits` grants it when usage is below the limit."
        )
        return True

    def _is_suspended(self, client: Client, resource: RecordedResource[GrantArgs]) -> bool:
        """Return whether the grant is missing because a limit is enforced."""
        return _covers(self._find_cached_mark(client, resource.declared, resource.outs), resource.declared)

    def _find_cached_mark(self, client: Client, args: GrantArgs, outs: dict[str, Any]) -> LimitMark | None:
        """Return the enforced limits of the tenant; None without enforcement, or if the grant has no limits."""
        record_id = self.run.record_id or record_identity.find_recorded(outs)
        if args.limited_by is None or record_id is None:
            return None
        return limit_records.find_cached_mark(client, args.limited_by.project_id, record_id)

    def find_live(self, outs: dict[str, Any]) -> SuspendedGrant | None:
        """Return a grant of the state as enforcement records it; None if it is not granted now.

        Raises:
            InactiveWarehouseError: The warehouse is inactive, which hides the object.
            LakekeeperError: The server refused a call or did not respond.
        """
        state = self.args.from_state(outs)
        client = self.connect_as_recorded(state.server)
        current = grant_target.resolve(client, state.on)
        for on in (current, former_object.find_former(client, state.on, current, outs)):
            if on is not None and _is_granted(client, on, state):
                return SuspendedGrant(str(state.on), on.identity, *_list_parts(state))
        return None

    def restore(self, outs: dict[str, Any]) -> bool:
        """Grant a grant of the state that was suspended. Return whether it exists now.

        Raises:
            NotOwnedError: The object belongs to another stack.
            LakekeeperError: The server refused a call or did not respond.
        """
        state = self.args.from_state(outs)
        client = self._connect_verified(state, outs)
        self._refuse_foreign(lambda: [self.find_marked(client, state)], MarkedObject.find_change_problem, outs)
        current = grant_target.resolve_now(client, state.on)
        on = current or former_object.find_former(client, state.on, current, outs)
        if on is None or self.is_ended(state):
            return False
        try:
            grants.add(client, on, state.held)
        except (NotFoundError, ForbiddenError):
            if current is not None or not grants.is_gone(client, on):
                raise
            return False
        return True

    @override
    def is_ended(self, args: GrantArgs) -> bool:
        return has_ended(args.until, self.run.clock())

    @override
    def remove_ended(self, id_: str, outs: dict[str, Any]) -> list[str]:
        state = self.args.from_state(outs)
        if not self.is_ended(state):
            return []
        client = self.connect_as_recorded(state.server)
        client.lists.forget()
        if self.find_live(outs) is None:
            return []
        self.delete(id_, outs)
        return [f"{state.held.kind} {state.held.principal}"]

    @override
    def remove(self, client: Client, resource: RecordedResource[GrantArgs]) -> None:
        state = resource.declared
        if state.held in self.run.claims.entries_of_others(state.place, state.claim):
            return  # another resource of this run declares the same grant
        current = grant_target.resolve_now(client, state.on)
        if current is not None:
            grants.remove(client, current, state.held)
        self._revoke_former(client, resource, current)

    def _revoke_former(self, client: Client, resource: RecordedResource[GrantArgs], current: Object | None) -> None:
        """Revoke the grant on the object that it was made on, if its name does not lead to that object now."""
        state = resource.declared
        former = former_object.find_former(client, state.on, current, resource.outs)
        if former is None or former_object.is_declared(client, self.run.claims, state.claim, former, state.held):
            return
        grants.remove(client, former, state.held)


def _is_granted(client: Client, on: Object, args: GrantArgs) -> bool:
    return args.held in (grants.get_cached(client, on) or ())


def _list_parts(args: GrantArgs) -> tuple[str, str, str]:
    return args.held.privilege, args.held.kind, args.held.principal


def _covers(mark: LimitMark | None, args: GrantArgs) -> bool:
    return mark is not None and args.limited_by is not None and mark.covers(args.limited_by.parts)


class Grant(Resource, module="lakekeeper", name="Grant"):
    """A privilege of a user (`user`: its id) or role (`role`: its id) on an object.

    `on` is one of `{"type": "server"}`, `{"type": "project", "project_id"}`, `{"type": "role", "project_id",
    "role_id"}`, `{"type": "tag", "project_id", "name"}`, `{"type": "warehouse", "warehouse_id"}`, `{"type":
    "namespace", "warehouse_id", "namespace"}` and `{"type": "table" or "view" or "generic-table", "warehouse_id",
    "namespace", "name"}`. Do not combine it with `Grants` on the same object.
    """

    on: pulumi.Output[dict[str, Any]]
    privilege: pulumi.Output[str]
    user: pulumi.Output[str | None]
    role: pulumi.Output[str | None]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        on: pulumi.Input[Mapping[str, Any]],
        privilege: pulumi.Input[str],
        user: pulumi.Input[str] | None = None,
        role: pulumi.Input[str] | None = None,
        until: str | None = None,
        limited_by: Mapping[str, Any] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            on: The object.
            privilege: The privilege, in the terms of the server's authorizer.
            user: Id of the user who receives it.
            role: Id of the role that receives it.
            until: Time from which a missing grant is no drift, RFC 3339, UTC. The program stops declaring the grant
                then.
            limited_by: Limits whose enforcement suspends the grant while they are reached.
            opts: Options of the resource.
        """
        run_context.current().declarations.add(Claim("Grant", resource_name), on, privilege)
        props = drop_none(
            server=server,
            on=on,
            privilege=privilege,
            user=user,
            role=role,
            until=until,
            limited_by=limited_by,
            declared_as=resource_name,
        )
        super().__init__(GrantProvider(), resource_name, props, delete_first(opts))
