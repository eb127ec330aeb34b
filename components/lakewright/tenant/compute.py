"""The compute of a tenant: computing units, maintenance jobs and their namespace."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import ClientCredentialsAuth

from lakewright.environment.cluster import Cluster, find_mistake
from lakewright.environment.compute_checks import texera_problems
from lakewright.environment.environment import Environment
from lakewright.environment.platform import Platform
from lakewright.environment.unit_identity import UnitIdentity, find_identity
from lakewright.kubernetes import activator, connect, manifests, texera
from lakewright.kubernetes.computing_unit import Activator, ComputingUnit, TenantNamespace
from lakewright.kubernetes.connect import ConnectAccess
from lakewright.kubernetes.maintenance.component import MaintenanceCronJobs
from lakewright.names.object_names import MAINTENANCE
from lakewright.spec import ComputingUnitSpec, Problem, SpecError, TenantSpec
from lakewright.tenant.storage import TenantStorage


def make_compute(
    spec: TenantSpec,
    platform: Platform,
    storage: dict[str, TenantStorage],
    catalog: pulumi.Output[CatalogConfig],
    opts: pulumi.ResourceOptions,
    *,
    after: pulumi.Resource,
) -> list[pulumi.Resource]:
    """Make the computing units, the maintenance CronJob and their namespace. Without units and jobs, make nothing."""
    cluster = platform.environment.kubernetes
    if spec.enforces_compute and (reason := _explain_missing_cluster(spec, cluster)):
        pulumi.log.warn(f"the limit of compute is not enforced: {reason}")
    if not _has_namespace(spec):
        return []
    on_cluster = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(providers=[platform.kubernetes()]))
    namespace = TenantNamespace(spec, on_cluster, cluster=cluster, after=after)
    resources: list[pulumi.Resource] = [namespace]
    in_namespace = pulumi.ResourceOptions.merge(on_cluster, pulumi.ResourceOptions(depends_on=[namespace]))
    activator_ports = activator.ports(spec)
    if activator_ports:
        resources.append(Activator(spec, image=_choose_jobs_image(spec, cluster), cluster=cluster, opts=in_namespace))
    # The activator listens for an idle unit before the Service of the unit leads to it.
    idle_opts = pulumi.ResourceOptions.merge(on_cluster, pulumi.ResourceOptions(depends_on=list(resources)))
    for unit in spec.computing_units:
        _check_texera(unit, platform.environment)
        visible = unit.visible_warehouses(spec.warehouse_names)
        identity = find_identity(spec, platform.environment, unit.name)
        resources.append(
            ComputingUnit(
                spec,
                unit,
                catalog=derive_unit_catalog(catalog, identity, visible),
                image=_require_image(
                    unit.image or cluster.image(unit.runtime), cluster, f"computing_units.{unit.name}"
                ),
                urls=[
                    *_list_outgoing_urls(spec, platform, storage, visible),
                    *texera.list_service_urls(unit, cluster.texera),
                ],
                identity=identity.pod,
                access=_require_access(unit, cluster),
                cluster=cluster,
                activator_port=activator_ports.get(unit.name),
                opts=idle_opts if unit.idle_after else in_namespace,
            )
        )
    if spec.maintenance:
        identity = find_identity(spec, platform.environment, MAINTENANCE)
        resources.append(
            MaintenanceCronJobs(
                spec,
                spec.maintenance,
                catalog=derive_unit_catalog(catalog, identity, spec.warehouse_names),
                image=_choose_jobs_image(spec, cluster),
                urls=_list_outgoing_urls(spec, platform, storage, spec.warehouse_names),
                identity=identity.pod,
                cluster=cluster,
                opts=in_namespace,
            )
        )
    return resources


def _has_namespace(spec: TenantSpec) -> bool:
    return bool(spec.computing_units) or spec.maintenance is not None


def _explain_missing_cluster(spec: TenantSpec, cluster: Cluster) -> str:
    """Return why no quota can stop units of the tenant; empty if a quota can."""
    if not _has_namespace(spec):
        return (
            "the tenant has no computing units and no jobs, so it has no namespace. Declare units or remove `compute`."
        )
    if cluster.render_to:
        return (
            "manifests are in a folder (`kubernetes.render_to` of the environment), so the cluster is not known."
            " `usage` still compares the limit with what exists."
        )
    return ""


def list_texera_registrations(spec: TenantSpec) -> list[dict[str, str]]:
    """Return the registration of each unit with runtime `texera` in Texera."""
    return [manifests.texera_registration(spec, unit) for unit in spec.computing_units if unit.runtime == "texera"]


def _choose_jobs_image(spec: TenantSpec, cluster: Cluster) -> str:
    """Return the image with `lakewright-spark`."""
    image = spec.maintenance.image if spec.maintenance else None
    return _require_image(image or cluster.maintenance_image or cluster.image("spark"), cluster, "maintenance")


def derive_unit_catalog(
    catalog: pulumi.Output[CatalogConfig], identity: UnitIdentity, warehouses: list[str]
) -> pulumi.Output[CatalogConfig]:
    """Return the catalog configuration of a unit: its warehouses, and its own authentication."""
    return catalog.apply(lambda config: config.select_warehouses(warehouses).model_copy(update={"auth": identity.auth}))


def collect_service_account_uids(compute: Sequence[pulumi.Resource]) -> dict[str, pulumi.Output[str | None]]:
    """Return the uid of the ServiceAccount of each unit and job; None where manifests are rendered."""
    return {
        component.unit_name: component.service_account_uid
        for component in compute
        if isinstance(component, ComputingUnit | MaintenanceCronJobs)
    }


def _require_image(image: str | None, cluster: Cluster, path: str) -> str:
    """Return an image after checking it, for programs without a stack file. Raises SpecError."""
    if mistake := find_mistake(image, trial=cluster.trial):
        raise SpecError("tenant", [Problem(f"{path}.image", mistake)])
    return str(image)


def _require_access(unit: ComputingUnitSpec, cluster: Cluster) -> ConnectAccess:
    """Return the access to a unit after checking it, for programs without a stack file. Raises SpecError."""
    if mistake := connect.find_mistake(unit.runtime, cluster.connect, trial=cluster.trial):
        raise SpecError("environment", [Problem("kubernetes.connect", mistake)])
    return cluster.connect


def _check_texera(unit: ComputingUnitSpec, environment: Environment) -> None:
    """Check a unit of Texera, for programs without a stack file. Raises SpecError."""
    if problems := list(texera_problems(unit, environment)):
        raise SpecError("environment", problems)


def _list_outgoing_urls(
    spec: TenantSpec, platform: Platform, storage: dict[str, TenantStorage], warehouses: list[str]
) -> list[str]:
    """Return the addresses that pods with these warehouses must reach: catalog, token endpoint and storages."""
    auth = platform.environment.lakekeeper.jobs_auth
    stores = [
        storage[spec.find_storage_name(warehouse)] for warehouse in spec.warehouses if warehouse.name in warehouses
    ]
    return [
        # With a gateway, the policies allow its pods instead of the address.
        *([] if platform.environment.kubernetes.catalog_pods else [platform.catalog_uri]),
        *([auth.token_url] if isinstance(auth, ClientCredentialsAuth) else []),
        *(store.backend.network_url(store.address) for store in stores),
    ]
