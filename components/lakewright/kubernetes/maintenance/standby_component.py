"""The CronJobs that keep the standby of a warehouse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi
from lakewright_spark.catalog import CatalogConfig

from lakewright.kubernetes.jobs_identity import PodIdentity
from lakewright.kubernetes.maintenance import standby as manifests
from lakewright.kubernetes.objects import KubernetesObject
from lakewright.kubernetes.settings import ClusterSettings
from lakewright.names.object_names import format_lag_check, format_standby, format_standby_config
from lakewright.spec import TenantSpec
from lakewright.spec.standby import StandbySpec


@dataclass(frozen=True)
class StandbyCronJobs:
    """The CronJobs of one warehouse, with the identity of the maintenance jobs."""

    tenant: TenantSpec
    warehouse: str
    standby: StandbySpec
    catalog: pulumi.Output[CatalogConfig]
    image: str
    identity: PodIdentity
    cluster: ClusterSettings

    def make(self, opts: pulumi.ResourceOptions) -> None:
        """Make the ConfigMap of the source's configuration, the CronJob of the copies, and the check of the lag."""
        tenant, warehouse, planned = self.tenant, self.warehouse, self.standby
        source = self.catalog.apply(lambda config: manifests.build_source(config, warehouse))
        data = source.apply(lambda config: {manifests.SOURCE_FILE: config.to_json()})
        name = f"{tenant.name}-{format_standby_config(warehouse)}"
        config_map = KubernetesObject(name, manifests.config_map(tenant, warehouse, data), opts)
        after = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[config_map]))
        spec = self._build_spec(source, planned.schedule, manifests.copy_arguments(planned))
        name = f"{tenant.name}-{format_standby(warehouse)}"
        KubernetesObject(name, manifests.copy_job(tenant, warehouse, spec), after)
        if planned.max_lag is not None:
            spec = self._build_spec(source, planned.lag_schedule, manifests.lag_arguments(planned, planned.max_lag))
            name = f"{tenant.name}-{format_lag_check(warehouse)}"
            KubernetesObject(name, manifests.lag_check(tenant, warehouse, spec), after)

    def _build_spec(
        self, source: pulumi.Output[CatalogConfig], schedule: str, arguments: list[str]
    ) -> pulumi.Output[dict[str, Any]]:
        return source.apply(
            lambda config: manifests.cron_job_spec(
                self.tenant,
                self.warehouse,
                self.standby,
                config,
                self.image,
                schedule=schedule,
                arguments=arguments,
                identity=self.identity,
                cluster=self.cluster,
            )
        )
