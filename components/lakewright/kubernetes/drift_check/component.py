"""DriftCronJob: the check of the fleet as resources of a stack."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from lakewright.kubernetes.drift_check.manifests import DriftCheckLocation, drift_check_manifests
from lakewright.kubernetes.drift_check.settings import DriftCheckSettings
from lakewright.kubernetes.objects import KubernetesObject


class DriftCronJob(pulumi.ComponentResource):
    """A CronJob that checks the fleet for drift, with its rights, policy and configuration."""

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
        *before, cron_job = drift_check_manifests(location, settings)
        objects: list[pulumi.Resource] = []
        for manifest in before:
            name = f"{location.cluster_name}-{manifest['kind'].lower()}-{manifest['metadata']['name']}"
            options = pulumi.ResourceOptions(parent=self, depends_on=[*after])
            objects.append(KubernetesObject(name, manifest, options))
        KubernetesObject(location.cluster_name, cron_job, pulumi.ResourceOptions(parent=self, depends_on=objects))
        self.register_outputs({})
