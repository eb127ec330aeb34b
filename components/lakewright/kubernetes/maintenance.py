"""The CronJob that runs a tenant's maintenance jobs."""

from __future__ import annotations

import pulumi
from lakewright_spark.catalog import CatalogConfig

from lakewright.kubernetes import maintenance_manifests as manifests
from lakewright.kubernetes import runtimes
from lakewright.kubernetes.computing_unit import KubernetesObject
from lakewright.kubernetes.jobs_identity import DEFAULT_IDENTITY, PodIdentity
from lakewright.names.object_names import MAINTENANCE
from lakewright.spec import MaintenanceSpec, TenantSpec


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
        """Make the CronJob. `urls` are the addresses that the jobs may reach: the catalog and all storages."""
        name = f"{tenant.name}-{MAINTENANCE}"
        super().__init__("lakewright:index:Maintenance", name, {}, opts)
        within = pulumi.ResourceOptions(parent=self)
        spec = catalog.apply(lambda config: manifests.cron_job_spec(tenant, maintenance, config, image, identity))
        before = [
            KubernetesObject(name, manifests.service_account(tenant), within),
            KubernetesObject(name, manifests.config_map(tenant, catalog.apply(runtimes.catalog_files)), within),
            KubernetesObject(name, manifests.network_policy(tenant, urls), within),
        ]
        after = pulumi.ResourceOptions(parent=self, depends_on=before)
        KubernetesObject(name, manifests.cron_job(tenant, spec), after)
        self.register_outputs({})
