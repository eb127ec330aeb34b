"""A tenant's warehouse with its role and namespaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
from lakewright_spark.catalog import CatalogWarehouse

from lakewright.environment.platform import Platform
from lakewright.field_map.arguments import build_args
from lakewright.lakekeeper import ExternalId, Namespace, Warehouse
from lakewright.lakekeeper.provider.options import list_aliases
from lakewright.lakekeeper.tenant.tenant_record import TenantRecord
from lakewright.lakekeeper.warehouse.role_proof import RoleProof
from lakewright.spec import TenantSpec, WarehouseSpec
from lakewright.spec.warehouse_writers import find_writers
from lakewright.storage.backend import WarehouseAccess
from lakewright.storage.existing import name_external_id_key
from lakewright.tenant.adopted_ids import AdoptedIds
from lakewright.tenant.storage import TenantStorage
from lakewright.tenant.warehouse_roles import RoleSettings, WarehouseRoles, make_warehouse_roles


class TenantWarehouse(pulumi.ComponentResource):
    """One warehouse of a tenant."""

    warehouse_id: pulumi.Output[str]
    roles: WarehouseRoles
    """Roles of the warehouse; none for storages with access keys."""
    namespaces: dict[str, Namespace]
    """By path."""

    def __init__(
        self,
        tenant: TenantSpec,
        spec: WarehouseSpec,
        *,
        platform: Platform,
        project_id: pulumi.Input[str],
        storage: TenantStorage,
        record: TenantRecord,
        adopted: AdoptedIds,
        after: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the warehouse after the resources in `after`.

        The record has the key prefix and the role's name, which remain when the warehouse is renamed.
        """
        name = f"{tenant.name}-{spec.name}"
        earlier = f"{tenant.name}-{spec.renamed_from}" if spec.renamed_from else None
        # A refused run must not leave a component with the new name.
        component_opts = pulumi.ResourceOptions(aliases=list_aliases(earlier), depends_on=[record])
        super().__init__(
            "lakewright:index:TenantWarehouse", name, {}, pulumi.ResourceOptions.merge(opts, component_opts)
        )
        retain = spec.data_deletion == "retain"
        inside = pulumi.ResourceOptions(parent=self, retain_on_delete=retain)
        # Each child has an alias of its own: a killed run may have renamed the component but not the child.
        within = pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(aliases=list_aliases(earlier)))
        prefix = record.read_warehouse(spec.name, "key_prefix")

        external_id = _choose_external_id(name, tenant.find_storage_name(spec), storage, within)
        settings = RoleSettings(tenant, spec, platform, storage, record, after, within)
        self.roles = make_warehouse_roles(settings, external_id)
        args = build_args(spec)
        args["adopt"] = tenant.adopts(spec)
        archive: dict[str, Any] = args.pop("archive", {})
        if spec.is_archived:
            args["archive"] = archive | {"roles": self.roles.list_names()}
        access = WarehouseAccess(
            storage.bucket,
            prefix,
            args.pop("storage"),
            role_arn=self.roles.catalog,
            vending_role_arn=self.roles.vending,
            kms_key_arn=storage.kms_key_arn,
        )
        profile = storage.backend.storage_profile(access, storage.address)
        credential = storage.backend.storage_credential(external_id)
        warehouse = Warehouse(
            name,
            **args,
            server=platform.server,
            project_id=project_id,
            storage=profile,
            credential=credential,
            own_bucket=storage.own_bucket,
            is_adopted=record.is_adopted(spec.name),
            record=record.bucket_tag if tenant.shares_project else None,
            opts=pulumi.ResourceOptions.merge(
                within,
                # Deleting the resource of an archived warehouse archives it.
                pulumi.ResourceOptions(depends_on=storage.made_by, retain_on_delete=retain and not spec.is_archived),
            ),
        )
        self.warehouse_id = adopted.resolve_warehouse_id(spec, warehouse.warehouse_id)
        if not storage.backend.allows_deletion:
            pulumi.log.info(
                f"warehouse `{spec.name}`: the platform may not delete in bucket {storage.backend.bucket}"
                " (`may_delete: false`). Dropped tables leave their files; snapshot expiration, orphan files, staged"
                " files and compaction are skipped.",
                warehouse,
            )
        proofs: list[pulumi.Resource] = []
        if storage.backend.proves_role:
            proof = RoleProof(
                name,
                server=platform.server,
                project_id=project_id,
                warehouse_id=self.warehouse_id,
                warehouse=spec.name,
                storage=profile,
                credential=credential,
                opts=within,
            )
            proofs.append(proof)
        namespaces = self.namespaces = dict[str, Namespace]()
        for path in spec.namespace_paths:
            parent_namespace = namespaces.get(path.rpartition(".")[0])
            namespaces[path] = Namespace(
                f"{name}-{path}",
                server=platform.server,
                warehouse_id=self.warehouse_id,
                name=path,
                deletion=spec.data_deletion,
                adopt=tenant.adopts(spec),
                opts=pulumi.ResourceOptions.merge(
                    inside,
                    pulumi.ResourceOptions(
                        depends_on=[parent_namespace] if parent_namespace else proofs,
                        aliases=list_aliases(f"{earlier}-{path}" if earlier else None),
                    ),
                ),
            )
        self.register_outputs({"warehouse_id": self.warehouse_id, "role_arn": self.roles.catalog})


def build_catalog_warehouse(
    tenant: TenantSpec, spec: WarehouseSpec, storage: TenantStorage, warehouse_id: str
) -> CatalogWarehouse:
    """Return the warehouse as jobs see it."""
    writers = find_writers(tenant, spec)
    return CatalogWarehouse(
        name=spec.name,
        id=warehouse_id,
        delegation=spec.delegation,
        namespaces=spec.namespace_paths,
        s3=storage.backend.client_options(storage.address),
        may_delete=storage.backend.allows_deletion,
        storage=storage.backend.service,
        owner=spec.owner,
        writers=tuple(writers),
        writer_ends={principal: end for principal, end in writers.items() if end is not None},
        server_jobs=tenant.maintenance.server_jobs(spec.name) if tenant.maintenance else (),
        credential_seconds=spec.token_seconds,
        limits=spec.limits.build_warehouse_limits() if spec.limits else None,
    )


def _choose_external_id(
    name: str, storage_name: str, storage: TenantStorage, opts: pulumi.ResourceOptions
) -> pulumi.Output[str] | None:
    """Return the external ID that the role requires: the tenant's or reserved ID, else an ID that is made once."""
    if not storage.backend.needs_external_id:
        return None
    tenant_external_id = storage.backend.external_id_of_tenant
    if tenant_external_id is None:
        reserved = (
            None if storage.backend.makes_role else pulumi.Config().get_secret(name_external_id_key(storage_name))
        )
        return reserved or ExternalId(name, opts=opts).value
    if tenant_external_id.startswith("config:"):
        return pulumi.Config().require_secret(tenant_external_id.removeprefix("config:"))
    return pulumi.Output.secret(tenant_external_id)
