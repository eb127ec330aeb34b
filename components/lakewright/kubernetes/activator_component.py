"""The activator of a tenant's idle units."""

from __future__ import annotations

import pulumi

from lakewright.kubernetes import activator
from lakewright.kubernetes.objects import KubernetesObject
from lakewright.kubernetes.settings import ClusterSettings
from lakewright.names.object_names import ACTIVATOR
from lakewright.spec import TenantSpec


class Activator(pulumi.ComponentResource):
    """The Deployment that starts and stops a tenant's idle units."""

    def __init__(
        self, tenant: TenantSpec, *, image: str, cluster: ClusterSettings, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Make the activator for all units with `idle_after`."""
        name = f"{tenant.name}-{ACTIVATOR}"
        super().__init__("lakewright:index:Activator", name, {}, opts)
        within = pulumi.ResourceOptions(parent=self)
        before = [
            KubernetesObject(name, manifest, within)
            for manifest in (
                activator.service_account(tenant),
                activator.role(tenant),
                activator.role_binding(tenant),
                activator.config_map(tenant),
                activator.network_policy(tenant, cluster),
            )
        ]
        after = pulumi.ResourceOptions(parent=self, depends_on=before)
        KubernetesObject(name, activator.deployment(tenant, image), after)
        self.register_outputs({})
