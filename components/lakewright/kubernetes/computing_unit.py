"""Computing units on Kubernetes. They have the catalog configuration, but no S3 key and no database password."""

from __future__ import annotations

import pulumi
from lakewright_spark.catalog import CatalogConfig
from pulumi_kubernetes import _utilities as kubernetes_package

from lakewright.kubernetes import connect, manifests, runtimes
from lakewright.kubernetes.connect import NO_TLS, ConnectAccess
from lakewright.kubernetes.connect_token import ConnectToken
from lakewright.kubernetes.jobs_identity import DEFAULT_IDENTITY, PodIdentity
from lakewright.kubernetes.manifests import Manifest
from lakewright.names.object_names import DENY_ALL
from lakewright.spec import ComputingUnitSpec, TenantSpec


class KubernetesObject(pulumi.CustomResource):
    """An object declared by its manifest, whose values may be outputs.

    The classes of `pulumi_kubernetes` make the same resources, but take a second to import.
    """

    def __init__(self, name: str, manifest: Manifest, opts: pulumi.ResourceOptions) -> None:
        """Declare the object of a manifest."""
        group = manifest["apiVersion"] if "/" in manifest["apiVersion"] else f"core/{manifest['apiVersion']}"
        version = pulumi.ResourceOptions(version=str(kubernetes_package.get_version()))
        super().__init__(
            f"kubernetes:{group}:{manifest['kind']}", name, manifest, pulumi.ResourceOptions.merge(version, opts)
        )


class TenantNamespace(pulumi.ComponentResource):
    """The namespace of a tenant's units, which denies all traffic that no unit allows."""

    def __init__(
        self,
        tenant: TenantSpec,
        opts: pulumi.ResourceOptions | None = None,
        *,
        after: pulumi.Resource | None = None,
    ) -> None:
        """Make the namespace after the resource `after`."""
        super().__init__("lakewright:index:TenantNamespace", tenant.name, {}, opts)
        first = pulumi.ResourceOptions(parent=self, depends_on=[after] if after else None)
        namespace = KubernetesObject(tenant.name, manifests.namespace(tenant), first)
        inside = pulumi.ResourceOptions(parent=self, depends_on=[namespace])
        KubernetesObject(f"{tenant.name}-{DENY_ALL}", manifests.deny_all(tenant), inside)
        self.register_outputs({})


class ComputingUnit(pulumi.ComponentResource):
    """One computing unit."""

    def __init__(
        self,
        tenant: TenantSpec,
        unit: ComputingUnitSpec,
        *,
        catalog: pulumi.Output[CatalogConfig],
        image: str,
        urls: list[str],
        clients_namespace: str,
        identity: PodIdentity = DEFAULT_IDENTITY,
        access: ConnectAccess = NO_TLS,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Make the unit. `urls` are the addresses that it may reach: the catalog and its storage."""
        name = f"{tenant.name}-{unit.name}"
        super().__init__("lakewright:index:ComputingUnit", name, {}, opts)
        within = pulumi.ResourceOptions(parent=self)

        files = catalog.apply(runtimes.catalog_files)
        spec = catalog.apply(
            lambda config: manifests.deployment_spec(tenant, unit, config, image, identity, access=access)
        )
        before = [
            KubernetesObject(name, manifests.service_account(tenant, unit), within),
            KubernetesObject(name, manifests.config_map(tenant, unit, files), within),
            KubernetesObject(name, manifests.network_policy(tenant, unit, urls, clients_namespace), within),
        ]
        if unit.runtime == "spark":
            before += _connect_objects(name, tenant, unit, access, within)
        KubernetesObject(name, manifests.service(tenant, unit), within)
        after = pulumi.ResourceOptions(parent=self, depends_on=before)
        KubernetesObject(name, manifests.deployment(tenant, unit, spec), after)
        self.register_outputs({"name": unit.name})


def _connect_objects(
    name: str, tenant: TenantSpec, unit: ComputingUnitSpec, access: ConnectAccess, opts: pulumi.ResourceOptions
) -> list[KubernetesObject]:
    """Make the Secrets of Spark Connect, except those that the environment names."""
    made: list[KubernetesObject] = []
    if access.token_secret is None:
        data = ConnectToken(name, opts).value.apply(connect.token_data)
        made.append(KubernetesObject(name, manifests.connect_secret(tenant, unit, data), opts))
    if access.issuer:
        made.append(KubernetesObject(name, manifests.certificate(tenant, unit, access.issuer), opts))
    return made
