"""DriftCronJob: the check of the fleet as resources of a stack."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from lakewright.kubernetes.drift_check.manifests import DriftCheckPlace, drift_check_manifests
from lakewright.kubernetes.drift_check_settings import DriftCheckSettings
from lakewright.kubernetes.objects import KubernetesObject


class DriftCronJob(pulumi.ComponentResource):
    """A CronJob that checks the fleet for drift, with its rights, policy and configuration."""

    def __init__(
        self,
        place: DriftCheckPlace,
        settings: DriftCheckSettings,
        *,
        after: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the objects.

        Args:
            place: Namespace and names. The namespace must exist.
            settings: What is checked, when, and where results go.
            after: Resources to wait for, such as the namespace.
            opts: Options, with the provider of the cluster.
        """
        super().__init__("lakewright:index:DriftCronJob", place.cluster_name, {}, opts)
        *before, cron_job = drift_check_manifests(place, settings)
        made: list[pulumi.Resource] = []
        for manifest in before:
            name = f"{place.cluster_name}-{manifest['kind'].lower()}-{manifest['metadata']['name']}"
            options = pulumi.ResourceOptions(parent=self, depends_on=[*after])
            made.append(KubernetesObject(name, manifest, options))
        KubernetesObject(place.cluster_name, cron_job, pulumi.ResourceOptions(parent=self, depends_on=made))
        self.register_outputs({})
