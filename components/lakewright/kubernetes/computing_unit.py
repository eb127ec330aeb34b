"""A tenant's namespace, computing units and activator on Kubernetes.

Units have the catalog configuration, but no S3 key.
"""

from __future__ import annotations

import pulumi
from lakewright_spark.catalog import CatalogConfig

from lakewright.credentials.random_secret import RandomSecret
from lakewright.kubernetes import activator, connect, manifests, namespace_manifests
from lakewright.kubernetes.connect import NO_TLS, ConnectAccess
from lakewright.kubernetes.jobs_identity import DEFAULT_IDENTITY, PodIdentity
from lakewright.kubernetes.objects import KubernetesObject, read_uid
from lakewright.kubernetes.settings import DEFAULT_CLUSTER, ClusterSettings
from lakewright.names.object_names import ACTIVATOR, COMPUTING_UNITS, DENY_ALL, TRUST
from lakewright.spec import ComputingUnitSpec, TenantSpec


class TenantNamespace(pulumi.ComponentResource):
    """The namespace of a tenant's pods: its quota, and the denial of all traffic that no unit allows."""

    def __init__(
        self,
        tenant: TenantSpec,
        opts: pulumi.ResourceOptions | None = None,
        *,
        cluster: ClusterSettings = DEFAULT_CLUSTER,
        after: pulumi.Resource | None = None,
    ) -> None:
        """Make the namespace after the resource `after`."""
        super().__init__("lakewright:index:TenantNamespace", tenant.name, {}, opts)
        first = pulumi.ResourceOptions(parent=self, depends_on=[after] if after else None)
        namespace = KubernetesObject(tenant.name, namespace_manifests.namespace(tenant), first)
        inside = pulumi.ResourceOptions(parent=self, depends_on=[namespace])
        KubernetesObject(f"{tenant.name}-{DENY_ALL}", namespace_manifests.deny_all(tenant), inside)
        KubernetesObject(tenant.name, namespace_manifests.resource_quota(tenant, cluster), inside)
        KubernetesObject(tenant.name, namespace_manifests.limit_range(tenant, cluster), inside)
        if tenant.computing_units:
            KubernetesObject(f"{tenant.name}-{COMPUTING_UNITS}", namespace_manifests.headless_service(tenant), inside)
        if authorities := namespace_manifests.trust_config_map(tenant, cluster):
            KubernetesObject(f"{tenant.name}-{TRUST}", authorities, inside)
        self.register_outputs({})


class ComputingUnit(pulumi.ComponentResource):
    """One computing unit."""

    service_account_uid: pulumi.Output[str | None]
    unit_name: str

    def __init__(
        self,
        tenant: TenantSpec,
        unit: ComputingUnitSpec,
        *,
        catalog: pulumi.Output[CatalogConfig],
        image: str,
        urls: list[str],
        identity: PodIdentity = DEFAULT_IDENTITY,
        access: ConnectAccess = NO_TLS,
        cluster: ClusterSettings = DEFAULT_CLUSTER,
        activator_port: int | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the unit.

        Args:
            tenant: The tenant.
            unit: The unit.
            catalog: The catalog configuration with the unit's warehouses.
            image: Image of the unit.
            urls: Addresses that the unit may reach: the catalog and its storage.
            identity: How the pod authenticates to the catalog.
            access: How clients reach Spark Connect.
            cluster: Settings of the cluster.
            activator_port: Port of the activator for an idle unit.
            opts: Options of the component.
        """
        name = f"{tenant.name}-{unit.name}"
        super().__init__("lakewright:index:ComputingUnit", name, {}, opts)
        within = pulumi.ResourceOptions(parent=self)

        files = catalog.apply(lambda config: manifests.list_config_files(unit, config, cluster))
        spec = catalog.apply(
            lambda config: manifests.deployment_spec(
                tenant, unit, config, image, identity, access=access, cluster=cluster
            )
        )
        account = KubernetesObject(name, manifests.service_account(tenant, unit), within)
        self.unit_name, self.service_account_uid = unit.name, read_uid(account)
        before = [
            account,
            KubernetesObject(name, manifests.config_map(tenant, unit, files), within),
            KubernetesObject(name, manifests.network_policy(tenant, unit, urls, cluster), within),
        ]
        if unit.runtime == "spark":
            before += _connect_objects(name, tenant, unit, access, within)
        KubernetesObject(name, manifests.service(tenant, unit, activator_port), within)
        after = pulumi.ResourceOptions(parent=self, depends_on=before)
        KubernetesObject(name, manifests.deployment(tenant, unit, spec), after)
        self.register_outputs({"name": unit.name})


def _connect_objects(
    name: str, tenant: TenantSpec, unit: ComputingUnitSpec, access: ConnectAccess, opts: pulumi.ResourceOptions
) -> list[KubernetesObject]:
    """Make the Secrets of Spark Connect, except Secrets that the environment names."""
    objects: list[KubernetesObject] = []
    if access.token_secret is None:
        token = RandomSecret(f"{name}-connect", opts)
        data = token.value.apply(connect.encode_token_data)
        objects.append(KubernetesObject(name, manifests.connect_secret(tenant, unit, data), opts))
    if access.issuer:
        objects.append(KubernetesObject(name, manifests.certificate(tenant, unit, access.issuer), opts))
    return objects


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
        KubernetesObject(name, activator.deployment(tenant, image, cluster), after)
        self.register_outputs({})
