"""Tenant: the wiring of a tenant's resources, from storage to compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pulumi
from lakewright_spark.catalog import CatalogConfig

from lakewright.aws.preflight import refuse_missing
from lakewright.environment.platform import Platform
from lakewright.environment.unit_identity import tenant_auth
from lakewright.lakekeeper import Bootstrap, DeletionGuard, Project, SharedProject
from lakewright.lakekeeper.tenant.tenant_record import TenantRecord
from lakewright.spec import TenantSpec
from lakewright.tenant.adopted_ids import AdoptedIds
from lakewright.tenant.compute import collect_service_account_uids, list_texera_registrations, make_compute
from lakewright.tenant.grants import make_grants, make_roles
from lakewright.tenant.identities import declare_users_and_members, select_tenant_identities
from lakewright.tenant.record import make_record
from lakewright.tenant.storage import TenantStorage, make_storages
from lakewright.tenant.tables import make_tables
from lakewright.tenant.task_queues import configure_task_queues
from lakewright.tenant.views import make_views
from lakewright.tenant.warehouse import TenantWarehouse, build_catalog_warehouse


class Tenant(pulumi.ComponentResource):
    """All resources of a tenant."""

    warehouse_ids: dict[str, pulumi.Output[str]]
    role_arns: dict[str, pulumi.Output[str]]
    roles_of_others: dict[str, dict[str, pulumi.Output[str]]]
    """Roles of principals outside the catalog, by warehouse and purpose: `maintenance`, and `share-NAME`."""
    catalog_config: pulumi.Output[CatalogConfig]
    computing_units: list[str]
    texera_register: list[dict[str, str]]
    """Registration of each unit with runtime `texera` in Texera."""

    def __init__(self, spec: TenantSpec, platform: Platform, opts: pulumi.ResourceOptions | None = None) -> None:
        """Declare the resources of a spec."""
        refuse_missing(spec, platform)
        super().__init__("lakewright:index:Tenant", spec.name, {}, opts)
        within = pulumi.ResourceOptions(parent=self)

        # The record refuses changes that would lose data, so it comes first. If another stack owns the project,
        # nothing else is made.
        record = make_record(spec, platform, within)
        project = (_find_shared_project if spec.shares_project else _make_project)(spec, platform, record, within)
        adopted = AdoptedIds(spec, platform)
        storage = make_storages(spec, platform, record, within, after=[project])
        warehouses = {
            warehouse.name: TenantWarehouse(
                spec,
                warehouse,
                platform=platform,
                project_id=project.project_id,
                storage=storage[spec.find_storage_name(warehouse)],
                record=record,
                adopted=adopted,
                after=[project],
                opts=within,
            )
            for warehouse in spec.warehouses
        }
        tables = make_tables(spec, platform, warehouses, within)
        views = make_views(spec, platform, warehouses, tables, within)
        identities = select_tenant_identities(spec, platform)
        roles = make_roles(
            spec, platform, identities.list_role_names(spec), project_id=project.project_id, record=record, opts=within
        )
        role_ids = {
            name: adopted.resolve_role_id(spec.qualify_role(name), role.role_id) for name, role in roles.items()
        }
        grants = make_grants(
            spec,
            platform,
            identities.list_grants(spec),
            role_ids=role_ids,
            project_id=project.project_id,
            warehouses=warehouses,
            tables=tables,
            opts=within,
        )
        self.catalog_config = _build_catalog_config(spec, platform, storage, warehouses)
        compute = make_compute(spec, platform, storage, self.catalog_config, within, after=project)

        members = declare_users_and_members(
            spec,
            platform,
            identities,
            project_id=project.project_id,
            role_ids=role_ids,
            uids=collect_service_account_uids(compute),
            after=project,
            opts=within,
        )
        queues = configure_task_queues(spec, platform, warehouses, within)

        inside = [*tables, *views, *roles.values(), *grants, *members, *compute, *queues]
        _make_guard(spec, platform, storage, warehouses, inside, roles=[*roles], record=record, opts=within)
        self.warehouse_ids = {name: warehouse.warehouse_id for name, warehouse in warehouses.items()}
        roles = {name: warehouse.roles for name, warehouse in warehouses.items()}
        self.role_arns = {
            name: warehouse_roles.catalog for name, warehouse_roles in roles.items() if warehouse_roles.catalog
        }
        self.roles_of_others = {
            name: warehouse_roles.by_purpose for name, warehouse_roles in roles.items() if warehouse_roles.by_purpose
        }
        self.computing_units = [unit.name for unit in spec.computing_units]
        self.texera_register = list_texera_registrations(spec)
        self.register_outputs({"warehouse_ids": self.warehouse_ids, "computing_units": self.computing_units})


def _find_shared_project(
    spec: TenantSpec, platform: Platform, record: TenantRecord, opts: pulumi.ResourceOptions
) -> SharedProject:
    """Find the project that the tenant shares with other tenants."""
    project_opts = pulumi.ResourceOptions(depends_on=[record, *_bootstrap_server(spec, platform, opts)])
    return SharedProject(
        spec.name,
        server=platform.server,
        project_id=spec.project_id,
        opts=pulumi.ResourceOptions.merge(opts, project_opts),
    )


def _bootstrap_server(spec: TenantSpec, platform: Platform, opts: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """Bootstrap the server if the environment says so."""
    if not platform.bootstraps:
        return []
    return [Bootstrap(spec.name, server=platform.server, accept_terms_of_use=True, opts=opts)]


def _make_project(spec: TenantSpec, platform: Platform, record: TenantRecord, opts: pulumi.ResourceOptions) -> Project:
    """Make the tenant's project. Its ID is the tenant's name, as project names need not be unique."""
    keep = any(warehouse.data_deletion == "retain" for warehouse in spec.warehouses)
    after = [record, *_bootstrap_server(spec, platform, opts)]
    project_opts = pulumi.ResourceOptions(depends_on=after, retain_on_delete=keep)
    return Project(
        spec.name,
        server=platform.server,
        name=spec.project_name,
        project_id=spec.project_id,
        kept_warehouses=record.list_kept_warehouses(),
        record=record.bucket_tag,
        adopt=bool(spec.adopt),
        opts=pulumi.ResourceOptions.merge(opts, project_opts),
    )


def _make_guard(
    spec: TenantSpec,
    platform: Platform,
    storage: dict[str, TenantStorage],
    warehouses: dict[str, TenantWarehouse],
    inside: Sequence[pulumi.Resource],
    *,
    roles: list[str],
    record: TenantRecord,
    opts: pulumi.ResourceOptions,
) -> None:
    """Make the deletion guard. It depends on all other resources, so it is deleted first and can protect data."""
    protected = [warehouse for warehouse in spec.warehouses if warehouse.deletion == "protect"]
    retained = any(warehouse.data_deletion == "retain" for warehouse in spec.warehouses)
    is_deleted = not spec.shares_project
    ids = [warehouse.warehouse_id for warehouse in warehouses.values()]
    parts = [part for tenant_storage in storage.values() for part in tenant_storage.made_by]
    DeletionGuard(
        spec.name,
        server=platform.server,
        warehouses={warehouse.name: warehouses[warehouse.name].warehouse_id for warehouse in protected},
        namespaces={warehouse.name: warehouse.namespace_paths for warehouse in protected},
        declared={name: warehouse.warehouse_id for name, warehouse in warehouses.items()},
        projects=_list_guarded_projects(spec, ids, record) if is_deleted and protected and not retained else None,
        roles={spec.project_id: roles} if is_deleted else None,
        buckets=[*_list_guarded_buckets(spec, storage, record)],
        adopted=record.list_adopted_prefixes([w.name for w in spec.warehouses if w.deletion == "purge"]),
        record=record.bucket_tag,
        purged_warehouses=[warehouse.name for warehouse in spec.warehouses if warehouse.deletion == "purge"],
        purged_tables=_list_purged_tables(spec),
        deletion="protect",
        opts=pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(depends_on=[*parts, *warehouses.values(), *inside])
        ),
    )


def _list_guarded_projects(
    spec: TenantSpec, ids: list[pulumi.Output[str]], record: TenantRecord
) -> pulumi.Output[dict[str, list[str]]]:
    """Return the project with the stack's warehouses, unless a retained warehouse keeps it."""
    return pulumi.Output.all(record.list_kept_warehouses(), *ids).apply(
        lambda values: {} if values[0] else {spec.project_id: values[1:]}
    )


def _list_purged_tables(spec: TenantSpec) -> dict[str, list[list[str]]] | None:
    """Return the tables with `deletion: purge` in warehouses with `retain`, by warehouse."""
    purged: dict[str, list[list[str]]] = {}
    for warehouse in spec.warehouses:
        for table in spec.tables:
            is_purged = table.path.warehouse == warehouse.name and spec.find_deletion(table) == "purge"
            if is_purged and warehouse.data_deletion == "retain":
                purged.setdefault(warehouse.name, []).append([*table.path.namespace, table.path.name])
    return purged or None


def _list_guarded_buckets(
    spec: TenantSpec, storage: dict[str, TenantStorage], record: TenantRecord
) -> Iterator[dict[str, Any]]:
    """Yield the buckets that are deleted with the stack, with the key prefixes that are emptied first."""
    for name, tenant_storage in storage.items():
        on_storage = [warehouse for warehouse in spec.warehouses if spec.find_storage_name(warehouse) == name]
        if tenant_storage.own_bucket and not any(warehouse.data_deletion == "retain" for warehouse in on_storage):
            purged = [warehouse.name for warehouse in on_storage if warehouse.deletion == "purge"]
            yield tenant_storage.own_bucket | {
                "emptied": [record.read_warehouse(warehouse, "key_prefix") for warehouse in purged],
                "kept": record.list_kept_warehouses(tenant_storage.own_bucket["bucket"]),
                **({"log_bucket": tenant_storage.purged_log_bucket} if tenant_storage.purged_log_bucket else {}),
            }


def _build_catalog_config(
    spec: TenantSpec, platform: Platform, storage: dict[str, TenantStorage], warehouses: dict[str, TenantWarehouse]
) -> pulumi.Output[CatalogConfig]:
    """Return the catalog configuration of jobs, which is complete when the warehouses have IDs."""
    ca_bundle, truststore = platform.environment.trust_paths

    def build_config(ids: dict[str, str]) -> CatalogConfig:
        return CatalogConfig(
            tenant=spec.name,
            uri=platform.catalog_uri,
            project_id=spec.project_id,
            auth=tenant_auth(spec, platform.environment),
            ca_bundle=ca_bundle,
            truststore=truststore,
            warehouses=[
                build_catalog_warehouse(
                    spec, warehouse, storage[spec.find_storage_name(warehouse)], ids[warehouse.name]
                )
                for warehouse in spec.warehouses
            ],
            limits=spec.limits.build_tenant_limits() if spec.limits else None,
            policies=(*(spec.maintenance.defaults() if spec.maintenance else ()), *spec.policies),
        )

    return pulumi.Output.all(**{name: warehouse.warehouse_id for name, warehouse in warehouses.items()}).apply(
        build_config
    )
