"""Users of a tenant's units and jobs, and the members of its roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi

from lakewright.credentials import references
from lakewright.environment.platform import Platform
from lakewright.environment.unit_identity import (
    ServiceAccountPrincipal,
    UnitIdentity,
    find_identities,
)
from lakewright.lakekeeper import RoleMembers, User, get_server_info
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.spec import TenantSpec
from lakewright.spec.grant import GrantSpec
from lakewright.spec.standard_roles import standard_grants
from lakewright.tenant.members import Membership, build_memberships, read_groups

Uids = Mapping[str, pulumi.Output[str | None]]
"""Uid of the ServiceAccount of each unit and job."""


@dataclass(frozen=True)
class TenantIdentities:
    """The identities of a tenant that the server distinguishes and grants privileges to."""

    by_unit: dict[str, UnitIdentity]
    """Units and jobs that have a user."""
    members: dict[str, Membership]
    """Members by role."""
    has_roles: bool
    """Whether the roles of warehouses are made."""

    def list_grants(self, tenant: TenantSpec) -> list[GrantSpec]:
        """Return the grants of the spec, and the grants of the roles of warehouses."""
        warehouse_grants = standard_grants(tenant) if self.has_roles else []
        return [*tenant.grants, *(grant for grant in warehouse_grants if grant not in tenant.grants)]

    def list_role_names(self, tenant: TenantSpec) -> list[str]:
        """Return the names of the roles that have grants, without duplicates."""
        return list(dict.fromkeys(grant.role for grant in self.list_grants(tenant) if grant.role))


def select_tenant_identities(tenant: TenantSpec, platform: Platform) -> TenantIdentities:
    """Return the identities to make. None are made on a server that enforces no grants.

    Raises:
        SpecError: A group of `role_members` cannot be read.
    """
    identities = {
        unit: identity
        for unit, identity in find_identities(tenant, platform.environment).items()
        if _has_user(identity, platform)
    }
    if not (identities or tenant.role_members):
        return TenantIdentities({}, {}, has_roles=False)
    if not _enforces_grants(platform):
        if tenant.role_members:
            pulumi.log.warn("`role_members` is ignored: the server enforces no grants, so roles have no effect.")
        return TenantIdentities({}, {}, has_roles=False)
    people = read_groups(tenant, platform.environment, _resolve_secret)
    members = build_memberships(
        tenant, identities, people, platform.environment.lakekeeper.identity_provider, platform.now
    )
    return TenantIdentities(identities, members, has_roles=True)


def declare_users_and_members(
    tenant: TenantSpec,
    platform: Platform,
    identities: TenantIdentities,
    *,
    project_id: pulumi.Input[str],
    role_ids: Mapping[str, pulumi.Input[str]],
    uids: Uids,
    after: pulumi.Resource,
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """Make the user of each unit and job, and the members of each role that has members.

    Args:
        tenant: The tenant's spec.
        platform: The tenant's environment.
        identities: Users and members to make.
        project_id: Project of the roles.
        role_ids: Ids of the roles by name.
        uids: Uids of ServiceAccounts.
        after: Resource to make before the users. The server refuses to provision users before its bootstrap ended.
        opts: Options of all resources.
    """
    users = _declare_users(
        tenant,
        platform,
        identities,
        uids,
        pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[after])),
    )
    resources: list[pulumi.Resource] = [*dict.fromkeys(users.values())]
    for role, membership in identities.members.items():
        unit_users = [users[unit] for unit in membership.units]
        resources.append(
            RoleMembers(
                f"{tenant.name}-{role}",
                server=platform.server,
                project_id=project_id,
                role_id=role_ids[role],
                users=[*membership.users, *(user.user_id for user in dict.fromkeys(unit_users))],
                names=dict(membership.names),
                until=_leave_out_units(membership.ends, unit_users),
                adopt=bool(tenant.adopt),
                opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=unit_users)),
            )
        )
    return resources


def _leave_out_units(ends: Mapping[str, str], unit_users: list[User]) -> pulumi.Input[Mapping[str, str] | None] | None:
    """Return the ends of memberships without users of units and jobs, who remain members."""
    if not ends or not unit_users:
        return ends or None
    return pulumi.Output.all(*(user.user_id for user in unit_users)).apply(
        lambda ids: {user: until for user, until in ends.items() if user not in ids} or None
    )


def _declare_users(
    tenant: TenantSpec,
    platform: Platform,
    identities: TenantIdentities,
    uids: Uids,
    opts: pulumi.ResourceOptions,
) -> dict[str, User]:
    """Make the user of each principal; units that share a client share a user."""
    users: dict[str, User] = {}
    by_principal: dict[object, User] = {}
    for unit, identity in identities.by_unit.items():
        principal = identity.principal
        if principal not in by_principal:
            # The server adds an account when its pod calls first, which may be earlier. No other account has its uid.
            account = isinstance(principal, ServiceAccountPrincipal)
            user_id = principal.user_id()
            by_principal[principal] = User(
                f"{tenant.name}-{unit}",
                server=platform.server,
                user_id=user_id or uids[unit].apply(principal.user_id).apply(str),
                name=f"{tenant.name}/{unit}" if account else f"{tenant.name}/{getattr(principal, 'client_id', unit)}",
                user_type="application",
                adopt=bool(tenant.adopt) and not account,
                may_exist=account,
                opts=opts,
            )
        users[unit] = by_principal[principal]
    return users


def _has_user(identity: UnitIdentity, platform: Platform) -> bool:
    """Return whether the stack can know the user. The uid of a rendered ServiceAccount is known after it is applied."""
    principal = identity.principal
    if not isinstance(principal, ServiceAccountPrincipal) or principal.user_id():
        return isinstance(principal, ServiceAccountPrincipal) or principal.user_id() is not None
    if platform.environment.kubernetes.render_to is None:
        return True
    pulumi.log.warn(
        f"{identity.unit}: its user in Lakekeeper is not made, since its ServiceAccount is rendered and has no uid yet."
        f" Apply the manifests, run `kubectl -n {principal.namespace} get serviceaccount {principal.name} -o"
        " jsonpath={.metadata.uid}`, write the uid into `identity.service_account_uid` of the unit, and run `up` again."
    )
    return False


def _enforces_grants(platform: Platform) -> bool:
    try:
        return get_server_info(server=platform.server).authz_backend == "openfga"
    except LakekeeperError as error:
        raise pulumi.RunError(f"could not ask the server whether it enforces grants: {error}") from None


def _resolve_secret(reference: str) -> str:
    return references.resolve(reference, _read_stack_config)


def _read_stack_config(key: str) -> str | None:
    space, _, name = key.rpartition(":")
    return pulumi.Config(space or pulumi.get_project()).get(name)
