"""PlatformSpec: the complete description of a platform stack."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from lakewright.kubernetes.drift_check.settings import DriftCheckSettings
from lakewright.kubernetes.settings import DnsSettings
from lakewright.lakekeeper.api.connection.server import NoServerAuth, ServerAuth
from lakewright.names.types import RoleArn
from lakewright.platform_stack.settings.authentication import AuthenticationSettings
from lakewright.platform_stack.settings.authorization import Authorization
from lakewright.platform_stack.settings.database import Persistence
from lakewright.platform_stack.settings.events import EventSettings
from lakewright.platform_stack.settings.gateway import GatewaySettings, ManagementAccess
from lakewright.platform_stack.settings.operation import (
    CacheSettings,
    Catalog,
    LogSettings,
    Monitoring,
    Requests,
    StorageSettings,
    Tasks,
    UiSettings,
)
from lakewright.platform_stack.settings.pods import ExtraPodParts, PodSettings
from lakewright.platform_stack.settings.types import Count, HttpUrl, ObjectName, ResourceQuantity, Text, Version
from lakewright.platform_stack.settings.variables import EnvPrefix
from lakewright.validation.strict_model import StrictModel

_LONGEST_NAME = 63 - len("-openfga-migrate-0123456789")
"""Characters. Names of Jobs have at most 63."""


def _check_platform_name(value: str) -> str:
    if len(value) > _LONGEST_NAME:
        raise ValueError(f"expected at most {_LONGEST_NAME} characters, as other objects' names begin with it")
    return value


class PodResources(StrictModel):
    """Requests and limits of a container."""

    cpu: ResourceQuantity = "250m"
    memory: ResourceQuantity = "256Mi"
    memory_limit: ResourceQuantity = "1Gi"


class Autoscaling(StrictModel):
    """Scaling by use of CPU. The Deployment then declares no number of replicas."""

    min: Count = 2
    max: Count = 6
    cpu_percent: Annotated[int, Field(ge=1, le=100)] = 70

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.max < self.min:
            raise ValueError(f"expected `max` of at least `min` ({self.min}), found {self.max}")
        return self


class ServerSettings(StrictModel):
    """The Lakekeeper server: its release, its pods and its configuration."""

    version: Version
    """Release of the image. Settings are checked against it."""
    image: Text
    """Image of that release, by digest: `quay.io/lakekeeper/catalog:v0.13.3@sha256:...`."""
    replicas: Count = 2
    autoscaling: Autoscaling | None = None
    resources: PodResources = PodResources()
    pods: PodSettings = PodSettings()
    extra_pod_parts: ExtraPodParts = ExtraPodParts()
    service_account: ObjectName | None = None
    """An existing ServiceAccount of the namespace. Default: the stack makes one."""
    authentication: Annotated[AuthenticationSettings, EnvPrefix("")] = AuthenticationSettings()
    authorization: Annotated[Authorization, EnvPrefix("")]
    requests: Annotated[Requests, EnvPrefix("")] = Requests()
    catalog: Annotated[Catalog, EnvPrefix("")] = Catalog()
    tasks: Annotated[Tasks, EnvPrefix("")] = Tasks()
    caches: Annotated[CacheSettings, EnvPrefix("CACHE__")] = CacheSettings()
    events: Annotated[EventSettings, EnvPrefix("")] = EventSettings()
    logs: Annotated[LogSettings, EnvPrefix("")] = LogSettings()
    storage: Annotated[StorageSettings, EnvPrefix("")] = StorageSettings()
    monitoring: Annotated[Monitoring, EnvPrefix("")] = Monitoring()
    ui: Annotated[UiSettings | None, EnvPrefix("")] = None
    """The UI's OIDC client. Administrators reach the UI at `management.url`."""
    ca_bundle: str | None = None
    """PEM file of certificate authorities for identity providers, object stores, OpenFGA, NATS and the store of
    secrets, relative to the project's folder. Mozilla's authorities are trusted too, except for the store of secrets.
    It does not affect the database (`database.postgres.ca_bundle`), Kafka (`ssl.ca.location` in its `config`), the
    cluster's API, OpenFGA's database (`database_ca_bundle`), and clients of the gateway."""
    extra_env: dict[str, str] = {}
    """Further variables, which have no setting here. No secrets."""
    egress: list[HttpUrl] = []
    """Further addresses that the server may reach, such as stores on other ports than 443."""
    monitoring_namespace: ObjectName | None = None
    """Namespace whose pods may read metrics, on port 9000."""


class AwsIdentity(StrictModel):
    """The AWS identity of the server, with which it assumes the roles of warehouses."""

    role_arn: RoleArn
    kind: Literal["irsa", "pod-identity"] = "irsa"
    """`irsa` annotates the ServiceAccount; `pod-identity` needs an association in EKS and no annotation."""


class BootstrapSettings(StrictModel):
    """The initial setup of the server, and how this stack authenticates for it."""

    accept_terms_of_use: Literal[True]
    auth: Annotated[ServerAuth, Field(discriminator="kind")] = NoServerAuth()
    is_operator: bool = False


class PlatformCluster(StrictModel):
    """The cluster of the platform."""

    context: Text | None = None
    """Context of the kubeconfig. Default: its current context."""
    render_to: str | None = None
    """Folder to write manifests to instead of applying them, relative to the project's folder."""
    dns: DnsSettings = DnsSettings()
    """The cluster's DNS, which NetworkPolicies allow."""


PLATFORM_KEY = "spec"
"""Key of the spec in the configuration of the platform's project."""


class PlatformSpec(StrictModel):
    """A Lakekeeper on Kubernetes with its gateway."""

    version: Literal[1]
    name: Annotated[ObjectName, AfterValidator(_check_platform_name)] = "lakekeeper"
    """Name of the Deployment and its Service, and beginning of the other objects' names."""
    namespace: ObjectName = "lakekeeper"
    trial: bool = False
    """Whether combinations that are unsafe in production are accepted."""
    server: ServerSettings
    database: Persistence
    gateway: GatewaySettings
    management: ManagementAccess = ManagementAccess()
    aws: AwsIdentity | None = None
    bootstrap: BootstrapSettings | None = None
    drift_check: DriftCheckSettings | None = None
    """A CronJob that checks the tenants for drift, where no CI does it."""
    kubernetes: PlatformCluster = PlatformCluster()
    allow_plain_http: bool = False
    """Whether tokens and secrets may be sent without TLS within the cluster."""

    @property
    def catalog_url(self) -> str:
        """Address of the gateway, without a path: Lakekeeper's BASE_URI."""
        gateway = self.gateway
        if gateway.url:
            return gateway.url
        scheme = "https" if gateway.tls else "http"
        return f"{scheme}://{self.name}-gateway.{self.namespace}.svc:{gateway.listen_port}"

    @property
    def server_account(self) -> str:
        """Name of the server's ServiceAccount."""
        return self.server.service_account or self.name

    @property
    def management_url(self) -> str | None:
        """Address of the management API for stacks."""
        route = self.management.route
        return self.management.url or (f"https://{route.host}{route.path}" if route else None)
