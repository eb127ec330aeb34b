"""Settings of the gateway, which is all that computing units reach, and of routes from outside the cluster."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from lakewright.kubernetes.settings import Cidr
from lakewright.platform_stack.settings.pods import PodSettings, ServiceSettings
from lakewright.platform_stack.settings.types import Count, HostName, HttpUrl, ObjectName, Port, SecretSource, Text
from lakewright.validation.strict_model import StrictModel


class GatewayCertificate(StrictModel):
    """The gateway's certificate: a Secret of the namespace (`tls.crt`, `tls.key`), or a file and the key's source."""

    secret: ObjectName | None = None
    """Name of a Secret, as cert-manager writes it."""
    certificate: str | None = None
    """PEM file of the certificate and its chain, relative to the project's folder. It must not be a CA."""
    key: SecretSource | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.secret is None and not (self.certificate and self.key):
            raise ValueError("expected `secret`, or `certificate` and `key`")
        if self.secret is not None and (self.certificate or self.key):
            raise ValueError("expected either `secret`, or `certificate` and `key`")
        return self


class RouteParent(StrictModel):
    """The Gateway (Gateway API) that a route belongs to."""

    name: ObjectName
    namespace: ObjectName | None = None
    section: ObjectName | None = None


class Route(StrictModel):
    """A route from outside the cluster: an Ingress, or an HTTPRoute of the Gateway API."""

    kind: Literal["ingress", "http-route"]
    host: HostName
    class_name: Text | None = None
    """Class of the Ingress. Default: the cluster's."""
    tls_secret: ObjectName | None = None
    """Secret with the Ingress's certificate."""
    path: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._~-]+)*$")] = ""
    """Path below which the host serves the service, such as `/lakehouse`. An HTTPRoute removes it from requests; an
    Ingress must do so by an annotation of its controller (ingress-nginx: `rewrite-target`)."""
    annotations: dict[str, str] = {}
    parent: RouteParent | None = None
    """Gateway of an HTTPRoute. It terminates TLS."""
    controller_namespace: ObjectName | None = None
    """Namespace of the pods that forward requests: of the ingress controller, or of the Gateway's proxies. A load
    balancer outside the cluster has none, such as an AWS ALB: name its networks in `client_cidrs` beside the route."""

    @model_validator(mode="after")
    def _fits_kind(self) -> Self:
        if (self.kind == "http-route") != (self.parent is not None):
            raise ValueError("expected `parent` with `kind: http-route`, and only with it")
        if self.kind == "http-route" and (self.class_name or self.tls_secret):
            raise ValueError("`class_name` and `tls_secret` belong to `kind: ingress`; a Gateway terminates TLS itself")
        return self


class GatewaySettings(StrictModel):
    """The proxy before the server. It forwards `/catalog` and `/health` and refuses all other paths."""

    image: Text
    """Image of nginx for any user id, such as nginxinc/nginx-unprivileged, by digest."""
    replicas: Count = 2
    pods: PodSettings = PodSettings()
    service: ServiceSettings = ServiceSettings()
    port: Port | None = None
    """Port of pods and Service. Default: 8443 with `tls`, else 8080."""
    tls: GatewayCertificate | None = None
    route: Route | None = None
    url: HttpUrl | None = None
    """Address at which computing units reach the gateway. Default: its Service's."""
    client_namespaces: list[ObjectName] = []
    """Namespaces besides the tenants' whose pods may use the catalog."""
    client_cidrs: list[Cidr] = []
    """Networks outside the cluster that may use the catalog, as the gateway's pods see them: of clients, of a load
    balancer, or of nodes. Required with `service.type` NodePort and LoadBalancer."""
    upstream_timeout: Annotated[int, Field(ge=1, le=3600)] = 60
    """Seconds until a request to the server fails."""

    @property
    def listen_port(self) -> int:
        """Port of pods and Service."""
        return self.port or (8443 if self.tls else 8080)


class ManagementAccess(StrictModel):
    """Access of administrators and stacks to the management API and the UI. Computing units have none."""

    url: HttpUrl | None = None
    """Address at which the machine that runs Pulumi reaches the server, such as `http://127.0.0.1:8181` of a
    port-forward. Default: the address of `route`. Without both, the stack does not bootstrap the server, and its output
    `endpoint` is null."""
    route: Route | None = None
    client_namespaces: list[ObjectName] = []
    """Namespaces whose pods may use the management API."""
    client_cidrs: list[Cidr] = []
    """Networks outside the cluster that may use the management API, such as the networks of the load balancer of
    `route`. Networks of pods would let tenants' pods use it, too."""
    ca_bundle: str | None = None
    """PEM file of certificate authorities for `url`, relative to the project's folder."""
