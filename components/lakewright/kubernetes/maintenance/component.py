"""The CronJobs that run a tenant's maintenance jobs."""

from __future__ import annotations

import pulumi
from lakewright_spark.catalog import CatalogConfig

from lakewright.kubernetes import runtimes
from lakewright.kubernetes.jobs_identity import DEFAULT_IDENTITY, PodIdentity
from lakewright.kubernetes.maintenance import executors, manifests, standby
from lakewright.kubernetes.maintenance.standby_component import StandbyCronJobs
from lakewright.kubernetes.objects import KubernetesObject, read_uid
from lakewright.kubernetes.settings import DEFAULT_CLUSTER, ClusterSettings
from lakewright.names.object_names import EXECUTORS, MAINTENANCE, STANDBY
from lakewright.spec import MaintenanceSpec, TenantSpec


class MaintenanceCronJobs(pulumi.ComponentResource):
    """The CronJobs of a tenant."""

    service_account_uid: pulumi.Output[str | None]
    unit_name = MAINTENANCE

    def __init__(
        self,
        tenant: TenantSpec,
        maintenance: MaintenanceSpec,
        *,
        catalog: pulumi.Output[CatalogConfig],
        image: str,
        urls: list[str],
        identity: PodIdentity = DEFAULT_IDENTITY,
        cluster: ClusterSettings = DEFAULT_CLUSTER,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the CronJobs. `urls` are the addresses that the jobs may reach: the catalog and all storages."""
        name = f"{tenant.name}-{MAINTENANCE}"
        super().__init__("lakewright:index:Maintenance", name, {}, opts)
        within = pulumi.ResourceOptions(parent=self)
        account = KubernetesObject(name, manifests.service_account(tenant), within)
        self.service_account_uid = read_uid(account)
        before = [
            account,
            KubernetesObject(name, manifests.config_map(tenant, catalog.apply(runtimes.catalog_files)), within),
            KubernetesObject(name, manifests.network_policy(tenant, maintenance, urls, cluster), within),
        ]
        if maintenance.standby:
            standby_urls = [*urls, *(url for planned in maintenance.standby.values() for url in planned.egress)]
            policy = standby.network_policy(tenant, standby_urls, cluster)
            before.append(KubernetesObject(f"{tenant.name}-{STANDBY}", policy, within))
        if spread := maintenance.executors:
            template = catalog.apply(
                lambda config: executors.pod_template(
                    tenant,
                    spread,
                    config,
                    identity,
                    cluster=cluster,
                    token_seconds=manifests.compute_longest_seconds(maintenance),
                )
            )
            before += [
                KubernetesObject(name, executors.role(tenant), within),
                KubernetesObject(name, executors.role_binding(tenant), within),
                KubernetesObject(f"{tenant.name}-{EXECUTORS}", executors.template_config_map(tenant, template), within),
                KubernetesObject(f"{tenant.name}-{EXECUTORS}", executors.network_policy(tenant, urls, cluster), within),
            ]
        after = pulumi.ResourceOptions(parent=self, depends_on=before)
        for cron in maintenance.cron_jobs():
            spec = catalog.apply(
                lambda config, cron=cron: manifests.cron_job_spec(
                    tenant, maintenance, cron, config, image, identity=identity, cluster=cluster
                )
            )
            resource_name = f"{tenant.name}-{manifests.cron_job_name(cron)}"
            KubernetesObject(resource_name, manifests.cron_job(tenant, cron, spec), after)
        for warehouse, planned in maintenance.standby.items():
            StandbyCronJobs(tenant, warehouse, planned, catalog, image, identity, cluster).make(after)
        self.register_outputs({})
