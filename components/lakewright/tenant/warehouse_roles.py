"""The IAM roles of a tenant's warehouse: for the catalog, for vending, for maintenance and for shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi

from lakewright.aws.access import Policy, RolePurpose, access_policy, principal_trust, trust_policy
from lakewright.aws.existing import ExistingObjects
from lakewright.environment.platform import Platform
from lakewright.lakekeeper import ExternalId
from lakewright.lakekeeper.provider.options import list_aliases
from lakewright.lakekeeper.tenant.tenant_record import TenantRecord
from lakewright.names.object_names import ROLE_PATH, role_name, share_purpose
from lakewright.names.types import PrincipalArn
from lakewright.spec import TenantSpec, WarehouseSpec
from lakewright.tenant.storage import TenantStorage
from lakewright.validation.moment import format_moment, has_ended, parse_end


@dataclass(frozen=True)
class WarehouseRoles:
    """ARNs of the roles of a warehouse; None for absent roles."""

    catalog: pulumi.Output[str] | None = None
    """Role that Lakekeeper assumes for its own access, and for vending unless there is another role."""
    vending: pulumi.Output[str] | None = None
    by_purpose: dict[str, pulumi.Output[str]] = field(default_factory=dict[str, pulumi.Output[str]])
    """Roles for other principals: `maintenance`, and `share-NAME` for each share."""

    def list_names(self) -> list[pulumi.Output[str]]:
        """Return the names of all roles."""
        arns = [self.catalog, self.vending, *self.by_purpose.values()]
        return [arn.apply(lambda value: value.rpartition("/")[2]) for arn in arns if arn is not None]


@dataclass(frozen=True)
class RoleSettings:
    """Settings that all roles of a warehouse share."""

    tenant: TenantSpec
    warehouse: WarehouseSpec
    platform: Platform
    storage: TenantStorage
    record: TenantRecord
    after: Sequence[pulumi.Resource]
    within: pulumi.ResourceOptions
    """Options of the warehouse's children, with its earlier name."""

    @property
    def name(self) -> str:
        """Return the name of the catalog's role, by the present name of the warehouse."""
        return role_name(self.tenant.name, self.warehouse.name)


def make_warehouse_roles(settings: RoleSettings, external_id: pulumi.Output[str] | None) -> WarehouseRoles:
    """Make the roles of a warehouse, or use the role that the tenant provides.

    Args:
        settings: Settings that the roles share.
        external_id: External ID that Lakekeeper uses; None for storages without roles.
    """
    backend, spec = settings.storage.backend, settings.warehouse
    if role_arn := backend.role_arn_of_tenant:
        return WarehouseRoles(pulumi.Output.from_input(role_arn))
    if external_id is None or not backend.makes_role:
        return WarehouseRoles()
    environment = settings.platform.environment.lakekeeper
    tagged = bool(spec.session_tags) or environment.principal_has_session_tags
    principal = settings.platform.principal_arn
    trust = external_id.apply(lambda value: trust_policy(principal, value, session_tags=tagged))
    catalog_purpose, seconds = RolePurpose.CATALOG, spec.token_seconds
    if spec.delegation == "remote-signing":
        catalog_purpose = RolePurpose.SIGNING
    elif spec.vending_role:
        catalog_purpose = RolePurpose.OWN_ACCESS
    catalog = _make_role(settings, catalog_purpose, trust, session_seconds=None if spec.vending_role else seconds)
    vending = (
        _make_role(settings, RolePurpose.VENDING, trust, suffix="vending", session_seconds=seconds)
        if spec.vending_role
        else None
    )
    roles_by_purpose: dict[str, pulumi.Output[str]] = {}
    if maintainer := spec.maintenance_role:
        roles_by_purpose["maintenance"] = _make_foreign_role(
            settings, RolePurpose.MAINTENANCE, "maintenance", maintainer.principal_arn
        )
    for share, consumer in spec.shares.items():
        if has_ended(consumer.until, settings.platform.now):
            if spec.data_deletion == "retain":
                pulumi.log.warn(
                    f"share `{share}` of warehouse `{spec.name}` has ended. If no `up` had its `until` before that time"
                    ", its role remains in AWS without an end: give the share a later `until`, run `up`, and let it end"
                    ". Then remove the share from the spec"
                )
        else:
            purpose, ends = share_purpose(share), consumer.until and format_moment(parse_end(consumer.until))
            roles_by_purpose[purpose] = _make_foreign_role(
                settings, RolePurpose.SHARE, purpose, consumer.principal_arn, ends=ends
            )
    return WarehouseRoles(catalog, vending, roles_by_purpose)


def _make_foreign_role(
    settings: RoleSettings, purpose: RolePurpose, suffix: str, principal_arn: PrincipalArn, *, ends: str | None = None
) -> pulumi.Output[str]:
    """Make a role for another principal than the catalog's, with an external ID of its own."""
    renamed = settings.warehouse.renamed_from
    tenant = settings.tenant.name
    earlier = f"{tenant}-{renamed}.{suffix}" if renamed else None
    external_id = ExternalId(
        f"{tenant}-{settings.warehouse.name}.{suffix}", opts=_with_alias(settings.within, earlier)
    ).value
    trust = external_id.apply(lambda value: principal_trust(principal_arn, value, ends=ends))
    return _make_role(settings, purpose, trust, suffix=suffix, ends=ends)


def _make_role(
    settings: RoleSettings,
    purpose: RolePurpose,
    trust: pulumi.Input[Policy],
    *,
    suffix: str | None = None,
    session_seconds: int | None = None,
    ends: str | None = None,
) -> pulumi.Output[str]:
    tenant, spec, record = settings.tenant, settings.warehouse, settings.record
    platform, storage = settings.platform, settings.storage
    region = storage.address.region
    prefix = record.read_warehouse(spec.name, "key_prefix")

    from lakewright.aws.access_role import AccessRole  # noqa: PLC0415 - imports pulumi_aws, which not all stacks need

    def build_rights(values: list[Any]) -> Policy:
        bucket, key_prefix, key = values
        return access_policy(bucket, key_prefix, key, region=region, purpose=purpose, ends=ends)

    def declare_role(role: pulumi.Input[str], existing: str | None) -> pulumi.Output[str]:
        return AccessRole(
            role_name(tenant.name, spec.name, suffix),
            role=role,
            # Roles for purposes are newer than the path, so that each of them has it.
            path=ROLE_PATH if suffix else record.role_path(spec.name),
            description=_describe_role(purpose, prefix),
            trust=trust,
            rights=pulumi.Output.all(storage.bucket, prefix, storage.kms_key_arn).apply(build_rights),
            session_seconds=session_seconds,
            permissions_boundary=platform.environment.aws.permissions_boundary,
            tags=record.mark_tags(platform.tags(tenant)),
            retain=spec.data_deletion == "retain" and ends is None,
            after=settings.after,
            existing=existing,
            renamed_from=role_name(tenant.name, spec.renamed_from, suffix) if spec.renamed_from else None,
            opts=pulumi.ResourceOptions(parent=settings.within.parent, providers=[platform.aws(region)]),
        ).arn

    role = record.read_warehouse(spec.name, "origin").apply(lambda origin: role_name(tenant.name, origin, suffix))
    if not tenant.adopts(spec):
        return declare_role(role, None)
    # The record knows the role's name, which a rename does not change. The option `import_` takes a plain text.
    existing = ExistingObjects(platform.environment.aws, region)
    # Another owner's role is refused before anything is made.
    existing.refuse_foreign_role(role_name(tenant.name, spec.renamed_from or spec.name, suffix), tenant.name)
    return role.apply(lambda name: declare_role(name, existing.role(name, tenant.name)))


def _describe_role(purpose: RolePurpose, prefix: pulumi.Output[str]) -> pulumi.Output[str]:
    match purpose:
        case RolePurpose.CATALOG | RolePurpose.OWN_ACCESS | RolePurpose.SIGNING:
            return pulumi.Output.format("Lakekeeper's way to {0}/ and to nothing else", prefix)
        case RolePurpose.VENDING:
            return pulumi.Output.format("Credentials that Lakekeeper vends for {0}/", prefix)
        case RolePurpose.MAINTENANCE:
            return pulumi.Output.format("Maintenance of {0}/ outside the catalog", prefix)
        case RolePurpose.SHARE:
            return pulumi.Output.format("Reads {0}/", prefix)


def _with_alias(opts: pulumi.ResourceOptions, earlier: str | None) -> pulumi.ResourceOptions:
    """Return the options of a warehouse's child with the alias of its own earlier name."""
    return pulumi.ResourceOptions(
        parent=opts.parent,
        retain_on_delete=opts.retain_on_delete,
        aliases=list_aliases(earlier),
    )
