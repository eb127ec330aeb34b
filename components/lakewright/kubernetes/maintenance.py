"""A tenant's maintenance: the jobs at their times on Kubernetes, and the server's own task queues."""

from __future__ import annotations

import pulumi
from lakewright_spark.catalog import CatalogConfig

from lakewright.environment.platform import Platform
from lakewright.kubernetes import maintenance_manifests as manifests
from lakewright.kubernetes import runtimes
from lakewright.kubernetes.computing_unit import KubernetesObject
from lakewright.kubernetes.jobs_identity import DEFAULT_IDENTITY, PodIdentity
from lakewright.lakekeeper import TaskQueueConfig
from lakewright.names.object_names import MAINTENANCE
from lakewright.spec import MaintenanceSpec, TenantSpec
from lakewright.warehouse import TenantWarehouse


class Maintenance(pulumi.ComponentResource):
    """The CronJob of a tenant."""

    def __init__(
        self,
        tenant: TenantSpec,
        maintenance: MaintenanceSpec,
        *,
        catalog: pulumi.Output[CatalogConfig],
        image: str,
        urls: list[str],
        identity: PodIdentity = DEFAULT_IDENTITY,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`urls` are the addresses that the jobs may reach: the catalog's, and those of all storage."""
        name = f"{tenant.name}-{MAINTENANCE}"
        super().__init__("lakewright:index:Maintenance", name, {}, opts)
        within = pulumi.ResourceOptions(parent=self)
        spec = catalog.apply(lambda known: manifests.cron_job_spec(tenant, maintenance, known, image, identity))
        before = [
            KubernetesObject(name, manifests.service_account(tenant), within),
            KubernetesObject(name, manifests.config_map(tenant, catalog.apply(runtimes.catalog_files)), within),
            KubernetesObject(name, manifests.network_policy(tenant, urls), within),
        ]
        after = pulumi.ResourceOptions(parent=self, depends_on=before)
        KubernetesObject(name, manifests.cron_job(tenant, spec), after)
        self.register_outputs({})


def server_queues(
    tenant: TenantSpec, platform: Platform, warehouses: dict[str, TenantWarehouse], opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """What the server is told of its task queues. Of a queue that the spec does not speak of, it is told nothing."""
    sides = tenant.maintenance.server if tenant.maintenance else {}
    retained = {one.name for one in tenant.warehouses if one.deletion == "retain"}
    return [
        TaskQueueConfig(
            f"{tenant.name}-{name}-{queue}",
            server=platform.server,
            warehouse_id=warehouses[name].warehouse_id,
            queue=queue,
            config=config,
            # The warehouse is the tenant's own, so that nobody else's settings are meant to stay.
            adopt=True,
            opts=pulumi.ResourceOptions.merge(
                opts,
                pulumi.ResourceOptions(
                    retain_on_delete=name in retained,
                    aliases=[pulumi.Alias(name=f"{tenant.name}-{earlier}-{queue}")]
                    if (earlier := tenant.renamed(name))
                    else None,
                ),
            ),
        )
        for name, side in sides.items()
        for queue, config in side.queues.items()
    ]
