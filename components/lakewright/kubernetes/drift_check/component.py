"""DriftCronJob: the check of the fleet as resources of a stack."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from lakewright.kubernetes.drift_check.manifests import DriftCheckLocation, drift_check_manifests
from lakewright.kubernetes.drift_check.settings import DriftCheckSettings
from lakewright.kubernetes.objects import KubernetesObject


class DriftCronJob(pulumi.ComponentResource):
    """CronJobs that check the fleet for drift and remove what has ended, with rights, policy and configuration."""

    def __init__(
        self,
        location: DriftCheckLocation,
        settings: DriftCheckSettings,
        *,
        after: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the objects.

        Args:
            location: Namespace and names. The namespace must exist.
            settings: Objects and times of the check, and targets of its results.
            after: Resources to wait for, such as the namespace.
            opts: Options, with the provider of the cluster.
        """
        super().__init__("lakewright:index:DriftCronJob", location.cluster_name, {}, opts)
        manifests = drift_check_manifests(location, settings)
        cron_jobs = [manifest for manifest in manifests if manifest["kind"] == "CronJob"]
        objects: list[pulumi.Resource] = []
        for manifest in manifests[: -len(cron_jobs)]:
            name = f"{location.cluster_name}-{manifest['kind'].lower()}-{manifest['metadata']['name']}"
            options = pulumi.ResourceOptions(parent=self, depends_on=[*after])
            objects.append(KubernetesObject(name, manifest, options))
        for cron_job in cron_jobs:
            suffix = cron_job["metadata"]["name"].removeprefix(location.name)
            options = pulumi.ResourceOptions(parent=self, depends_on=objects)
            KubernetesObject(f"{location.cluster_name}{suffix}", cron_job, options)
        self.register_outputs({})
