"""Grants: all grants on one object. Other grants on it are drift and are revoked."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self, cast

import pulumi
from pulumi.dynamic import CheckFailure, CheckResult, Resource
from pydantic import AfterValidator, model_validator
from typing_extensions import override

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.privileges import ASSIGNEE, OWNERS, GrantEntry, Object, format_entries
from lakewright.lakekeeper.api.management import grants, users
from lakewright.lakekeeper.grants import former_object
from lakewright.lakekeeper.grants import target as grant_target
from lakewright.lakekeeper.grants.entry import DeclaredGrant, claim_place, entries, explain_unsupported, make_claim_key
from lakewright.lakekeeper.grants.target import GrantTarget
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.diagnostics import warn, warn_of_unenforced_grants
from lakewright.lakekeeper.provider.errors import InactiveWarehouseError, NotOwnedError
from lakewright.lakekeeper.provider.inputs import CreateOnly, Replace, ResourceInputs, StateOnly, Update, has_unknown
from lakewright.lakekeeper.provider.options import ServerInput, delete_first, drop_none
from lakewright.lakekeeper.provider.ownership_conflicts import Claim
from lakewright.lakekeeper.provider.resource_state import ObservedResource, RecordedResource
from lakewright.ownership.marked_object import MarkedObject

Kept = frozenset[GrantEntry]
"""Ownership that the resource keeps: the server granted it to the creator of the object."""


def _each_once(given_entries: list[DeclaredGrant]) -> list[DeclaredGrant]:
    return entries({entry.held for entry in given_entries})


class GrantsArgs(ResourceInputs):
    """Inputs for all grants on an object."""

    on: Annotated[GrantTarget, Replace()]
    """The object."""
    grants: Annotated[list[DeclaredGrant], AfterValidator(_each_once), Update(via="grants")] = []
    """All grants on it."""
    keep_owners: Annotated[bool, Update(via="grants")] = True
    """Keep the owners that exist when the resource is created."""
    declared_as: Annotated[str, StateOnly()] = ""
    adopt: Annotated[bool, CreateOnly()] = False
    """Take over an object that has other grants. They are revoked."""

    @model_validator(mode="after")
    def _no_members(self) -> Self:
        if not has_unknown(self.grants) and any(grant.privilege == ASSIGNEE for grant in self.grants):
            raise ValueError(f"`{ASSIGNEE}` is membership in a role: declare it by `RoleMembers`")
        return self

    @property
    def held(self) -> frozenset[GrantEntry]:
        """Return the grants as the server stores them."""
        return frozenset(entry.held for entry in self.grants)

    @property
    def claim(self) -> Claim:
        """Return what the resource claims."""
        return Claim("Grants", self.declared_as, frozenset() if has_unknown(self.grants) else self.held, self.on)


class GrantsProvider(LakekeeperProvider[GrantsArgs]):
    """Adds declared grants and revokes other grants, in one transaction. The id is the text of the object."""

    args = GrantsArgs
    seen_by = ("grants",)
    natural_key = ("on",)
    belongs_to_maker = False
    may_be_on_foreign_objects = True

    @override
    def find_marked(self, client: Client, args: GrantsArgs) -> MarkedObject | None:
        return grant_target.find_marked(client, args.on)

    @override
    def title(self, args: GrantsArgs) -> str:
        return f"grants on {args.on} at {args.server.endpoint}"

    @override
    def find_existing(self, client: Client, new: GrantsArgs) -> tuple[str, ObservedResource[GrantsArgs]] | None:
        on = grant_target.resolve_now(client, new.on)
        live_grants = _relevant(grants.list_grants(client, on) or frozenset()) if on else frozenset[GrantEntry]()
        if on is None or not live_grants:
            return None
        kept_owners = _first_kept(client, on, live_grants, new)
        live_args = new.model_copy(update={"grants": entries(live_grants - (kept_owners - new.held))})
        return str(new.on), ObservedResource(live_args, _compute_outputs(on, kept_owners))

    @override
    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        result = super().check(_olds, news)
        if result.failures:
            return result
        args = self.args.parse(result.inputs)
        if reason := "" if "server" in _olds else explain_unsupported(self, args.server, args.on):
            return CheckResult(news, [CheckFailure("on", reason)])
        return claim_place(self.run.claims, result, make_claim_key(args.server, args.on), args.claim, "on")

    @override
    def make(self, client: Client, new: GrantsArgs) -> tuple[str, ObservedResource[GrantsArgs]]:
        on = grant_target.require(client, new.on)
        live_grants = _read_grants(client, on, new)
        kept_owners = _first_kept(client, on, live_grants, new)
        if (undeclared := live_grants - new.held - kept_owners) and not new.adopt:
            raise NotOwnedError(
                f"{new.on} at {client.endpoint} has grants that are not declared: {format_entries(undeclared)}."
                " Declare them, or revoke them with `adopt=True`."
            )
        warn_of_unenforced_grants(client.server(), f"grants on {new.on}")
        return str(new.on), self._converge(client, on, kept_owners, new)

    @override
    def find(self, client: Client, resource: RecordedResource[GrantsArgs]) -> ObservedResource[GrantsArgs] | None:
        state = resource.declared
        try:
            on = grant_target.resolve(client, state.on)
        except InactiveWarehouseError as hidden:
            warn(f"{hidden}")
            return ObservedResource(state, _copy_computed(resource.outs), hidden.warehouse_id)
        former = former_object.find_former(client, state.on, on, resource.outs)
        if former is not None and (_list_revocable(resource) & (grants.get_cached(client, former) or frozenset())):
            drift = former_object.describe_drift(former, state.on)
            return ObservedResource(state, {**_copy_computed(resource.outs), "drift": [drift]})
        live_grants = grants.get_cached(client, on) if on else None
        if on is None or live_grants is None:
            return None
        live_grants = _relevant(live_grants)
        kept_owners = _find_kept_owners(client, on, live_grants, resource)
        visible = live_grants - (kept_owners - state.held)
        return ObservedResource(
            state.model_copy(update={"grants": entries(visible)}), _compute_outputs(on, kept_owners)
        )

    @override
    def change(
        self, client: Client, resource: RecordedResource[GrantsArgs], new: GrantsArgs
    ) -> ObservedResource[GrantsArgs]:
        on = grant_target.require(client, new.on)
        live_grants = _read_grants(client, on, new)
        kept_owners = (
            _find_kept_owners(client, on, live_grants, resource)
            if resource.declared.keep_owners and new.keep_owners
            else None
        )
        observed = self._converge(
            client, on, _first_kept(client, on, live_grants, new) if kept_owners is None else kept_owners, new
        )
        self._revoke_former(client, resource, on)
        return observed

    def remove(self, client: Client, resource: RecordedResource[GrantsArgs]) -> None:
        """Revoke the declared grants; grants that other users added since then are kept."""
        state = resource.declared
        on = grant_target.resolve_now(client, state.on)
        if on is not None:
            handed_over = self.run.claims.entries_of_others(make_claim_key(state.server, state.on), state.claim)
            ours = _list_revocable(resource) - handed_over
            grants.converge(client, on, lambda _: (set(), set(ours)))
        self._revoke_former(client, resource, on)

    def _revoke_former(self, client: Client, resource: RecordedResource[GrantsArgs], current: Object | None) -> None:
        """Revoke the declared grants on the recorded object, if its name does not lead to that object now."""
        state, claims = resource.declared, self.run.claims
        former = former_object.find_former(client, state.on, current, resource.outs)
        if former is None:
            return
        revocable = _list_revocable(resource)
        ours = {
            entry for entry in revocable if not former_object.is_declared(client, claims, state.claim, former, entry)
        }
        grants.converge(client, former, lambda _: (set(), ours))

    def _converge(self, client: Client, on: Object, kept_owners: Kept, new: GrantsArgs) -> ObservedResource[GrantsArgs]:
        if (
            grants.converge(
                client, on, lambda live_grants: (set(new.held), set(_relevant(live_grants) - new.held - kept_owners))
            )
            is None
        ):
            raise grant_target.make_missing_error(client, new.on)
        return ObservedResource(new, _compute_outputs(on, kept_owners))


def _relevant(live_grants: frozenset[GrantEntry]) -> frozenset[GrantEntry]:
    """Return the grants without the members of a role, which the server stores as grants."""
    return frozenset(entry for entry in live_grants if entry.privilege != ASSIGNEE)


def _read_grants(client: Client, on: Object, args: GrantsArgs) -> frozenset[GrantEntry]:
    live_grants = grants.list_grants(client, on)
    if live_grants is None:
        raise grant_target.make_missing_error(client, args.on)
    return _relevant(live_grants)


def _first_kept(client: Client, on: Object, live_grants: frozenset[GrantEntry], args: GrantsArgs) -> Kept:
    """Return the owners to keep at creation: owners that are not declared, and the calling user."""
    if not args.keep_owners:
        return frozenset()
    owners = frozenset(entry for entry in live_grants if entry.privilege in OWNERS[on.kind])
    declared_ones = owners & args.held
    ourselves = users.ourselves(client) if declared_ones else None
    return owners - frozenset(entry for entry in declared_ones if entry.principal != ourselves)


def _find_kept_owners(
    client: Client, on: Object, live_grants: frozenset[GrantEntry], resource: RecordedResource[GrantsArgs]
) -> Kept:
    """Return the owners kept since creation. A recreated object has its own creator."""
    if not resource.declared.keep_owners or resource.outs.get("object_id") == on.identity:
        return _read_kept_owners(resource.outs)
    return _first_kept(client, on, live_grants, resource.declared)


def _read_kept_owners(outs: dict[str, Any]) -> Kept:
    return frozenset(
        DeclaredGrant.parse(owner).held for owner in cast(list[dict[str, Any]], outs.get("kept_owners") or [])
    )


def _list_revocable(resource: RecordedResource[GrantsArgs]) -> frozenset[GrantEntry]:
    """Return the declared grants without grants that existed before the resource."""
    return resource.declared.held - _read_kept_owners(resource.outs)


def _compute_outputs(on: Object, kept_owners: Kept) -> dict[str, Any]:
    return {"object_id": on.identity, "kept_owners": [entry.props() for entry in entries(kept_owners)]}


def _copy_computed(outs: dict[str, Any]) -> dict[str, Any]:
    return {"object_id": outs.get("object_id"), "kept_owners": outs.get("kept_owners")}


class Grants(Resource, module="lakekeeper", name="Grants"):
    """All grants on an object: `grants` is a list of `{"privilege", "user" or "role"}`, `on` as for `Grant`.

    Owners that exist when the resource is created (the object's creator) are kept; `kept_owners` lists them. With
    `keep_owners=False` only declared owners are kept. Declare at most one for an object, and no `Grant` on it.
    """

    on: pulumi.Output[dict[str, Any]]
    grants: pulumi.Output[list[dict[str, Any]]]
    object_id: pulumi.Output[str]
    kept_owners: pulumi.Output[list[dict[str, Any]]]

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        on: pulumi.Input[Mapping[str, Any]],
        grants: pulumi.Input[Sequence[pulumi.Input[Mapping[str, Any]]]],
        keep_owners: pulumi.Input[bool] | None = None,
        adopt: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the resource.

        Args:
            resource_name: Name of the resource in the program, unique for its type.
            server: `endpoint` and `auth` of the server; secrets by reference.
            on: The object.
            grants: All grants on it.
            keep_owners: Keep the owners that exist when the resource is created.
            adopt: Take over an object that has other grants. They are revoked.
            opts: Options of the resource.
        """
        run_context.current().declarations.add(Claim("Grants", resource_name), on)
        props = drop_none(
            server=server,
            on=on,
            grants=grants,
            keep_owners=keep_owners,
            declared_as=resource_name,
            adopt=adopt or None,
        )
        computed = {"object_id": None, "kept_owners": None}
        super().__init__(GrantsProvider(), resource_name, {**props, **computed}, delete_first(opts))
