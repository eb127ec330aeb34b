"""Settings of a cluster that manifests depend on: networks, GPUs, certificate authorities, Texera and quota."""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from lakewright.kubernetes.field_types import DnsLabel, FileKey, LabelKey, LabelValue, ObjectName, PublicVariable
from lakewright.kubernetes.pod_placement import PodPlacement
from lakewright.names.host_kinds import METADATA_NETWORKS
from lakewright.names.types import ServiceUrl
from lakewright.spec.computing_unit import TexeraCatalog
from lakewright.spec.identity import JobsSecret
from lakewright.spec.quota import QuotaSpec
from lakewright.validation.strict_model import StrictModel


def _check_cidr(value: str) -> str:
    try:
        network = ipaddress.ip_network(value)
    except ValueError as error:
        raise ValueError(f"expected a network such as `10.0.0.0/8` or `fd00::/8` ({error})") from None
    if "/" not in value:
        raise ValueError(f"expected a network with its prefix length, `{network}`")
    inside = [
        metadata_network
        for metadata_network in METADATA_NETWORKS
        if metadata_network.version == network.version and _contains(metadata_network, network)
    ]
    if inside:
        raise ValueError(f"expected a network outside {inside[0]}, where the cloud's metadata service is")
    return str(network)


def _contains(outer: Any, inner: Any) -> bool:
    return inner.subnet_of(outer)


Cidr = Annotated[str, AfterValidator(_check_cidr)]
"""A network in CIDR notation, outside the metadata services of clouds."""


class DnsSettings(StrictModel):
    """The cluster's DNS, which pods may ask. The defaults fit CoreDNS on most clusters."""

    namespace: DnsLabel = "kube-system"
    """`openshift-dns` on OpenShift."""
    labels: Annotated[dict[LabelKey, LabelValue], Field(min_length=1)] = {"k8s-app": "kube-dns"}
    """Labels of the pods: `dns.operator.openshift.io/daemonset-dns: default` on OpenShift."""
    port: Annotated[int, Field(ge=1, le=65535)] = 53
    """Port of the pods: 5353 on OpenShift."""
    node_caches: list[IPv4Address] = []
    """Addresses of NodeLocal DNSCache, usually 169.254.20.10. Pods ask it instead of the pods of the DNS."""


class CatalogPods(StrictModel):
    """The pods that serve the tenants' requests to the catalog: the pods of the platform's gateway."""

    namespace: DnsLabel
    labels: Annotated[dict[LabelKey, LabelValue], Field(min_length=1)]
    port: Annotated[int, Field(ge=1, le=65535)]
    """Port of the pods, which may differ from the port of their Service."""


class GpuSettings(StrictModel):
    """GPUs of the cluster."""

    resource: Annotated[
        str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$")
    ] = "nvidia.com/gpu"
    """Resource that a unit requests."""
    runtime_class: ObjectName | None = "nvidia"
    """RuntimeClass of units with GPUs; null where the cluster needs none."""


class CaBundle(StrictModel):
    """Source of the certificate authorities that pods trust: `file`, `config_map` or `secret`."""

    file: Path | None = None
    """PEM file on this machine. The stack makes a ConfigMap and a Java truststore of it."""
    config_map: ObjectName | None = None
    """ConfigMap in each tenant's namespace, which another program makes."""
    secret: ObjectName | None = None
    """Secret in each tenant's namespace, which another program makes."""
    key: FileKey = "ca.crt"
    """Key of the PEM file in the ConfigMap or Secret."""
    truststore_key: FileKey | None = None
    """Key of a PKCS 12 truststore of these authorities in it, for Java."""

    @model_validator(mode="after")
    def _one_source(self) -> CaBundle:
        sources = [name for name in ("file", "config_map", "secret") if getattr(self, name) is not None]
        if len(sources) != 1:
            raise ValueError(f"expected one of file, config_map and secret; found {' and '.join(sources) or 'none'}")
        if self.file is None and self.truststore_key is None:
            raise ValueError(f"expected `truststore_key` with `{sources[0]}`: Java reads no PEM file")
        return self


def _check_database_port(value: str) -> str:
    port = value.partition(":")[2].partition("/")[0]
    if not 1 <= int(port) <= 65535:
        raise ValueError("expected `HOST:PORT/DATABASE` with a port from 1 to 65535")
    return value


DatabaseAddress = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9.-]+:\d{1,5}/[A-Za-z0-9_-]+$"), AfterValidator(_check_database_port)
]
"""`HOST:PORT/DATABASE`."""


class PostgresCatalog(StrictModel):
    """The database of Texera's own catalog."""

    address: DatabaseAddress
    """`HOST:PORT/DATABASE`, as in Texera's `uri-without-scheme`."""
    username: Annotated[str, Field(min_length=1, pattern=r"^\S+$")]
    password: JobsSecret | None = None
    """Password of the user. Without it, the database must accept the user by network or certificate."""


class TexeraDatabase(StrictModel):
    """Texera's database. Units connect to it when they start, and at each execution."""

    address: DatabaseAddress
    """`HOST:PORT/DATABASE`."""
    search_path: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*(,[a-z_][a-z0-9_]*)*$")] = "texera_db,public"
    """Schemas with Texera's tables and extensions: `currentSchema` of the JDBC address."""
    username: Annotated[str, Field(min_length=1, pattern=r"^\S+$")]
    password: JobsSecret
    """Password of the user."""


class TexeraSettings(StrictModel):
    """Settings of units with runtime `texera`."""

    database: TexeraDatabase | None = None
    """Texera's database. Required unless `kubernetes.trial` is set: a unit ends at its start without it."""
    jwt_secret: JobsSecret | None = None
    """The secret that Texera signs its users' tokens with. Required unless `kubernetes.trial` is set."""
    user_token: JobsSecret | None = None
    """Token of the user of Texera as whom the tenant's units read files of datasets from Texera's file service. Without
    it, Texera reads them from LakeFS with S3 keys that units do not have."""
    catalog: TexeraCatalog = "rest"
    """`rest`: the tenant's warehouses. `postgres`: Texera's own catalog in a database, with files in the pod."""
    postgres: PostgresCatalog | None = None
    proxy_image: str | None = None
    """Image of nginx with the module njs, such as nginxinc/nginx-unprivileged, by digest unless `kubernetes.trial` is
    set. It adds the unit's token to requests to the catalog: Texera sends none."""
    proxy_timeout: Annotated[int, Field(ge=1, le=3600)] = 60
    """Seconds until a request of a unit to the catalog fails. Use at least `gateway.upstream_timeout` of the
    platform."""
    proxy_max_body_size: Annotated[int, Field(ge=1)] = 32 * 1024 * 1024
    """Bytes of the largest request of a unit to the catalog. Use at least `server.requests.max_body_size` of the
    platform."""
    variables: dict[PublicVariable, str] = {}
    """Other environment variables of Texera, such as the addresses of its services; no secrets, and no variable that
    the stack sets. `JAVA_OPTS` is added to the stack's options."""
    egress: list[ServiceUrl] = []
    """Further addresses that units reach, such as Texera's file service and the store of its datasets."""


class ClusterSettings(StrictModel):
    """Settings of a cluster that manifests depend on."""

    clients_namespace: DnsLabel = "texera"
    """Namespace whose pods may connect to computing units."""
    catalog_pods: CatalogPods | None = None
    """Pods of the gateway before Lakekeeper. Pods of tenants reach these alone. Without it, they reach the host and
    port of the catalog, and so the management API too."""
    outside_cidrs: Annotated[list[Cidr], Field(min_length=1)] = ["0.0.0.0/0"]
    """Networks where the storages and other hosts outside the cluster are, if they are known by name. Metadata
    services of clouds are always excluded."""
    cluster_cidrs: list[Cidr] = []
    """Networks of the cluster's pods, Services and nodes, excluded from `outside_cidrs`."""
    api_server_cidrs: Annotated[list[Cidr], Field(min_length=1)] = ["0.0.0.0/0"]
    """Networks of the cluster's API server, which idle units and executors of maintenance jobs need."""
    dns: DnsSettings = DnsSettings()
    """The cluster's DNS."""
    gpu: GpuSettings = GpuSettings()
    """Kind of GPUs."""
    pods: PodPlacement = PodPlacement()
    """Where the tenants' pods run, and how the cluster handles them. Another program makes the Secrets of image
    registries in each tenant's namespace."""
    ca_bundle: CaBundle | None = None
    """Certificate authorities that pods trust for catalog and storage, mounted at `lakekeeper.jobs_ca_bundle`."""
    texera: TexeraSettings = TexeraSettings()
    quota: QuotaSpec | None = None
    """Highest quota of each tenant, and its default. Without it, the default is the need of units and jobs."""

    @model_validator(mode="after")
    def _check_outside_networks(self) -> ClusterSettings:
        inside: list[Any] = [ipaddress.ip_network(cidr) for cidr in self.cluster_cidrs]
        for cidr in self.outside_cidrs:
            outer: Any = ipaddress.ip_network(cidr)
            if covering := [
                cluster_network
                for cluster_network in inside
                if cluster_network.version == outer.version and _contains(cluster_network, outer)
            ]:
                raise ValueError(
                    f"outside_cidrs: expected networks beyond cluster_cidrs; {covering[0]} has all of {cidr}"
                )
        return self


DEFAULT_CLUSTER = ClusterSettings()
