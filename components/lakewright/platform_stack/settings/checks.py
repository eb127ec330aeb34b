"""Rules across settings: unsafe combinations, missing parts, and settings that the release does not have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from lakewright.names.host_kinds import HostKind, is_loopback, kind_of_host
from lakewright.platform_stack.settings.extra_env import find_extra_env_problems
from lakewright.platform_stack.settings.platform import PlatformSpec
from lakewright.platform_stack.settings.pods import PodSettings
from lakewright.platform_stack.settings.types import find_image_mistake, is_minted, parse_cluster_secret
from lakewright.platform_stack.settings.variables import PREFIX, list_settings, parse_release
from lakewright.validation.problems import Problem, SpecError, list_problems

SUPPORTED = ("0.11", "0.12", "0.13", "0.14")
_TAG = re.compile(r":v?(\d+\.\d+\.\d+)(?:@|$)")


def parse_platform_spec(raw: Any, source: str) -> PlatformSpec:
    """Return a spec. Raises SpecError with all problems, each with its path."""
    try:
        spec = PlatformSpec.model_validate(raw)
    except ValidationError as error:
        raise SpecError(source, list_problems(error, raw)) from None
    if problems := [problem for check in _CHECKS for problem in check(spec)]:
        raise SpecError(source, problems)
    return spec


def _check_images(spec: PlatformSpec) -> Iterator[Problem]:
    openfga = spec.server.authorization.openfga
    trial_database = spec.database.trial_postgres
    drift_check = spec.drift_check
    images = {
        "server.image": spec.server.image,
        "gateway.image": spec.gateway.image,
        "server.authorization.openfga.server.image": openfga.server.image if openfga and openfga.server else None,
        "drift_check.image": drift_check.image if drift_check else None,
        "drift_check.limits.image": drift_check.limits.image if drift_check and drift_check.limits else None,
        "drift_check.compute.image": drift_check.compute.image if drift_check and drift_check.compute else None,
        "database.trial_postgres.image": trial_database.image if trial_database else None,
    }
    for path, image in images.items():
        if image and (reason := find_image_mistake(image, trial=spec.trial)):
            yield Problem(path, reason)
    tag = _TAG.search(spec.server.image)
    if tag and tag[1] != spec.server.version:
        yield Problem("server.version", f"expected the release of the image's tag, {tag[1]}", spec.server.version)


def _check_release(spec: PlatformSpec) -> Iterator[Problem]:
    version = spec.server.version
    if ".".join(version.split(".")[:2]) not in SUPPORTED:
        yield Problem("server.version", f"expected a release of {', '.join(SUPPORTED)}", version)
        return
    for root, model in (("server", spec.server), ("database", spec.database)):
        for setting in list_settings(model, root):
            if parse_release(setting.variable.since) > parse_release(version):
                since, name = setting.variable.since, PREFIX + setting.variable.name
                yield Problem(
                    setting.path, f"needs Lakekeeper {since} or newer ({name}); `server.version` is {version}"
                )


def _check_trials(spec: PlatformSpec) -> Iterator[Problem]:
    """Refuse settings without protection outside trials."""
    if spec.trial:
        return
    server, postgres = spec.server, spec.database.postgres
    unsafe: dict[str, tuple[bool, str]] = {
        "server.authorization.backend": (
            server.authorization.backend == "allowall",
            "`allowall` lets every caller read and change all tenants' data",
        ),
        "server.authentication": (
            not server.authentication.is_enabled,
            "without `oidc` or `kubernetes`, every caller is anonymous",
        ),
        "database.trial_postgres": (
            spec.database.trial_postgres is not None,
            "a Postgres of one pod has no backup and no replica",
        ),
        "server.logs.request_bodies": (bool(server.logs.request_bodies), "bodies contain credentials of warehouses"),
        "server.logs.authorization_header": (bool(server.logs.authorization_header), "headers contain tokens"),
        "server.storage.skip_validation": (
            bool(server.storage.skip_validation),
            "warehouses would be accepted without proof that their credentials work",
        ),
        "server.storage.s3_direct_system_credentials": (
            bool(server.storage.s3_direct_system_credentials),
            "warehouses could use the server's own AWS identity",
        ),
        "server.storage.s3_require_external_id": (
            server.storage.s3_require_external_id is False,
            "a tenant could name the role of another tenant",
        ),
        "database.postgres.ssl_mode": (
            postgres is not None
            and postgres.ssl_mode in {"disable", "allow", "prefer"}
            and bool(postgres.remote_hosts),
            "the connection may be in plain text",
        ),
        "server.authentication.kubernetes.accept_legacy_service_accounts": (
            bool(server.authentication.kubernetes and server.authentication.kubernetes.accept_legacy_service_accounts),
            "tokens without audience and expiry would be accepted",
        ),
    }
    for path, (is_unsafe, reason) in unsafe.items():
        if is_unsafe:
            yield Problem(path, f"is for trials only: {reason}. Change it, or set `trial: true`")


def _check_database_proxy(spec: PlatformSpec) -> Iterator[Problem]:
    """Refuse a database within the pod without a proxy that runs before the containers that wait for the database."""
    postgres = spec.database.postgres
    if postgres and postgres.remote_hosts != postgres.hosts and not spec.server.extra_pod_parts.sidecars:
        reason = (
            "expected a proxy with `restartPolicy: Always`, because a host of `database.postgres` is the pod itself;"
            " found none. Add the proxy, or name the database's host"
        )
        yield Problem("server.extra_pod_parts.init_containers", reason)


def _check_autoscaling(spec: PlatformSpec) -> Iterator[Problem]:
    """Refuse containers without a request of CPU: the autoscaler then computes no use of CPU, and never scales."""
    extra = spec.server.extra_pod_parts
    if spec.server.autoscaling is None:
        return
    for field, containers in (("init_containers", extra.sidecars), ("containers", extra.containers)):
        for container in containers:
            if not _requests_cpu(container):
                reason = f"expected `resources.requests.cpu` of `{container['name']}`, which `server.autoscaling` needs"
                yield Problem(f"server.extra_pod_parts.{field}", f"{reason}; found none")


def _requests_cpu(container: dict[str, Any]) -> bool:
    """Return whether a container requests CPU. Kubernetes requests the limit if a container has no request."""
    match container:
        case {"resources": {"requests": {"cpu": _}} | {"limits": {"cpu": _}}}:
            return True
        case _:
            return False


def _check_disruption_budgets(spec: PlatformSpec) -> Iterator[Problem]:
    """Refuse budgets that let no replica end: a drain of its node would wait forever."""
    server, openfga = spec.server, spec.server.authorization.openfga
    autoscaling, openfga_server = server.autoscaling, openfga and openfga.server
    parts: dict[str, tuple[str, int, PodSettings]] = {
        "server": ("server.autoscaling.min", autoscaling.min, server.pods)
        if autoscaling
        else ("server.replicas", server.replicas, server.pods),
        "gateway": ("gateway.replicas", spec.gateway.replicas, spec.gateway.pods),
    }
    if openfga_server:
        path = "server.authorization.openfga.server"
        parts[path] = (f"{path}.replicas", openfga_server.replicas, openfga_server.pods)
    for path, (setting, replicas, pods) in parts.items():
        if pods.min_available and pods.min_available >= replicas:
            reason = (
                f"expected fewer than `{setting}`, {replicas}: a drain of a node would wait forever. Lower or remove"
                f" `min_available`, or raise `{setting}`"
            )
            yield Problem(f"{path}.pods.min_available", reason, str(pods.min_available))


_RDS = re.compile(r"\.rds\.amazonaws\.com(\.cn)?$")
_RDS_AUTHORITIES = "https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem"


def _check_database_authorities(spec: PlatformSpec) -> Iterator[Problem]:
    """Refuse RDS without its authorities, which Lakekeeper's client does not trust: the first migration would fail."""
    postgres = spec.database.postgres
    if postgres is None or postgres.ca_bundle or postgres.ssl_mode not in {"verify-ca", "verify-full"}:
        return
    if any(_RDS.search(host) for host in postgres.hosts):
        yield Problem(
            "database.postgres.ca_bundle",
            f"required for RDS, whose certificates are of Amazon's own authorities: save {_RDS_AUTHORITIES} beside"
            " Pulumi.yaml, and name the file",
        )


def _check_plain_http(spec: PlatformSpec) -> Iterator[Problem]:
    """Refuse addresses that tokens, credentials or permissions would be sent to without TLS."""
    server, secrets = spec.server, spec.database.secrets
    oidc, openfga = server.authentication.oidc, server.authorization.openfga
    addresses: dict[str, str | None] = {
        "gateway.url": spec.catalog_url,
        "management.url": spec.management_url,
        "server.authentication.oidc.provider_uri": oidc.provider_uri if oidc else None,
        "server.authorization.openfga.endpoint": openfga.endpoint if openfga else None,
        "server.ui.provider_uri": server.ui.provider_uri if server.ui else None,
        "database.secrets.url": getattr(secrets, "url", None),
    }
    addresses |= {
        f"server.authentication.providers.{key}.provider_uri": provider.provider_uri
        for key, provider in server.authentication.providers.items()
    }
    if openfga and openfga.client_credentials:
        path = "server.authorization.openfga.client_credentials.token_endpoint"
        addresses[path] = openfga.client_credentials.token_endpoint
    nats = server.events.nats
    if nats and (nats.password or nats.token or nats.credentials_file):
        addresses["server.events.nats.address"] = nats.address
    for path, url in addresses.items():
        if url and (reason := _find_address_mistake(url, spec)):
            yield Problem(path, reason)


def _find_address_mistake(url: str, spec: PlatformSpec) -> str | None:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme in {"https", "tls"} or is_loopback(host) or spec.trial:
        return None
    secure = "tls" if parts.scheme == "nats" else "https"
    if kind_of_host(host) not in {HostKind.INTERNAL, HostKind.SHORT_NAME}:
        return f"expected `{secure}://`: tokens and credentials would leave the cluster without TLS, to {url}"
    if not spec.allow_plain_http:
        return (
            f"expected `{secure}://`: tokens and credentials would be sent without TLS to {url}. Configure TLS, or set"
            " `allow_plain_http: true` where the cluster's network is trusted"
        )
    return None


def _check_routes(spec: PlatformSpec) -> Iterator[Problem]:
    for path, route in (("gateway.route", spec.gateway.route), ("management.route", spec.management.route)):
        if route and route.kind == "ingress" and not route.tls_secret and not spec.trial:
            yield Problem(f"{path}.tls_secret", "required: without it, tokens and credentials are sent in plain text")
    gateway, management = spec.gateway.route, spec.management.route
    if gateway and management and gateway.host == management.host:
        reason = "expected another host than `gateway.route.host`, which must not serve the management API"
        yield Problem("management.route.host", reason, management.host)


def _check_callers(spec: PlatformSpec) -> Iterator[Problem]:
    """Refuse Services and routes whose requests no NetworkPolicy would allow."""
    service = spec.gateway.service.type
    if service != "ClusterIP" and not spec.gateway.client_cidrs:
        reason = (
            f"required with `gateway.service.type: {service}`: the gateway's NetworkPolicy otherwise allows pods only."
            " Name the networks of requests as pods see them: of clients, of the load balancer, or of nodes"
        )
        yield Problem("gateway.client_cidrs", reason)
    for path, settings in (("gateway", spec.gateway), ("management", spec.management)):
        if settings.route and not settings.route.controller_namespace and not settings.client_cidrs:
            reason = (
                "expected the namespace of the pods that forward requests; found none. For a load balancer outside the"
                f" cluster, such as an AWS ALB, name its networks in `{path}.client_cidrs`"
            )
            yield Problem(f"{path}.route.controller_namespace", reason)


def _check_wiring(spec: PlatformSpec) -> Iterator[Problem]:
    authorization, authentication = spec.server.authorization, spec.server.authentication
    openfga = authorization.openfga
    if openfga and not authentication.is_enabled:
        yield Problem("server.authentication", "required with `openfga`: permissions need users")
    if openfga and openfga.server and not openfga.server.database_uri and not spec.database.trial_postgres:
        yield Problem("server.authorization.openfga.server.database_uri", "required without `trial_postgres`")
    if spec.server.ui:
        if not (authentication.oidc or spec.server.ui.provider_uri):
            yield Problem("server.ui", "needs `server.authentication.oidc`, where its users log in")
        if not spec.management_url:
            yield Problem("server.ui", "needs `management.url` or `management.route`: the gateway does not serve it")
    if bootstrap := spec.bootstrap:
        if not spec.management_url:
            reason = (
                "needs `management.url`: the address at which this machine reaches the management API. Add"
                " `management.route`, or forward a port (`kubectl port-forward service/NAME 8181`) and name"
                " `http://127.0.0.1:8181`"
            )
            yield Problem("bootstrap", reason)
        if authentication.is_enabled and bootstrap.auth.kind == "none":
            yield Problem("bootstrap.auth", "required: the server accepts no anonymous requests")


def _check_sources(spec: PlatformSpec) -> Iterator[Problem]:
    """Refuse Secrets of the cluster where the stack itself needs the value, and generated values that others issue."""
    openfga, events, tls = spec.server.authorization.openfga, spec.server.events, spec.gateway.tls
    beside = openfga.server if openfga else None
    needed: dict[str, str | None] = {
        "server.authorization.openfga.server.database_uri": beside.database_uri if beside else None,
        "server.authorization.openfga.api_key": openfga.api_key if openfga and beside else None,
        "server.events.nats.credentials_file": events.nats.credentials_file if events.nats else None,
        "gateway.tls.key": tls.key if tls else None,
    }
    if events.kafka:
        needed |= {f"server.events.kafka.secrets.{key}": source for key, source in events.kafka.secrets.items()}
    for path, source in needed.items():
        if source and parse_cluster_secret(source):
            yield Problem(
                path, "expected a reference such as `env:NAME`: the stack needs this value, and reads no Secret"
            )
        elif source and is_minted(source) and not path.endswith("api_key"):
            yield Problem(path, "expected a reference such as `env:NAME`: a generated value would fit nothing here")


def _check_caches(spec: PlatformSpec) -> Iterator[Problem]:
    """Check a rule that the server enforces by refusing to start."""
    users, roles = spec.server.caches.user_assignments, spec.server.caches.role
    if users.enabled is False or roles.enabled is False:
        return
    longest = roles.time_to_live or 120
    if (users.time_to_live or 120) > longest:
        path = "server.caches.user_assignments.time_to_live"
        yield Problem(path, f"expected at most the life of the cache `role`, {longest}", str(users.time_to_live or 120))


_CHECKS: tuple[Callable[[PlatformSpec], Iterator[Problem]], ...] = (
    _check_images,
    _check_release,
    _check_trials,
    _check_database_proxy,
    _check_autoscaling,
    _check_disruption_budgets,
    _check_database_authorities,
    _check_plain_http,
    _check_routes,
    _check_callers,
    _check_wiring,
    _check_sources,
    _check_caches,
    find_extra_env_problems,
)
