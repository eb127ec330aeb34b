"""NetworkPolicies of the platform's namespace: all traffic is denied that no policy here allows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lakewright.kubernetes.drift_check.manifests import DriftCheckLocation
from lakewright.kubernetes.network import allow_dns, allow_egress
from lakewright.kubernetes.settings import ClusterSettings
from lakewright.platform_stack.manifests.gateway import GATEWAY, gateway_name
from lakewright.platform_stack.manifests.lakekeeper import MIGRATION, SERVER
from lakewright.platform_stack.manifests.objects import Manifest, component_labels, make_object
from lakewright.platform_stack.settings.gateway import GatewaySettings, ManagementAccess
from lakewright.platform_stack.settings.platform import PlatformSpec
from lakewright.platform_stack.settings.server_environment import METRICS_PORT, OPENFGA_PORT, POSTGRES_PORT, SERVER_PORT

OPENFGA = "openfga"
OPENFGA_MIGRATION = "openfga-migration"
"""Apart from `openfga`: a Service or disruption budget must not select the pods of a Job."""
POSTGRES = "postgres"
TENANT_LABEL = "lakewright/tenant"
"""Label of every tenant's namespace."""

Rule = dict[str, Any]
_POD_IDENTITY = "169.254.170.23/32"
"""The agent of EKS Pod Identity on each node."""


def list_network_policies(spec: PlatformSpec) -> list[Manifest]:
    """Return the policies of a spec."""
    policies = [
        make_object(
            spec,
            "networking.k8s.io/v1",
            "NetworkPolicy",
            f"{spec.name}-deny-all",
            spec={"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
        ),
        _policy(spec, spec.name, SERVER, _server_ingress(spec), _server_egress(spec)),
        _policy(spec, f"{spec.name}-migration", MIGRATION, [], _migration_egress(spec)),
        _policy(spec, gateway_name(spec), GATEWAY, _gateway_ingress(spec), _gateway_egress(spec)),
    ]
    openfga = spec.server.authorization.openfga
    if openfga and openfga.server:
        callers = [_pods(spec, SERVER), _pods(spec, MIGRATION)]
        egress = [*allow_dns(spec.kubernetes.dns), *_openfga_database(spec)]
        policies.append(_policy(spec, f"{spec.name}-openfga", OPENFGA, [_allow(callers, OPENFGA_PORT)], egress))
        policies.append(_policy(spec, f"{spec.name}-openfga-migration", OPENFGA_MIGRATION, [], egress))
    if spec.database.trial_postgres:
        callers = [_pods(spec, component) for component in (SERVER, MIGRATION, OPENFGA, OPENFGA_MIGRATION)]
        policies.append(_policy(spec, f"{spec.name}-postgres", POSTGRES, [_allow(callers, POSTGRES_PORT)], []))
    return policies


def locate_drift_check(spec: PlatformSpec) -> DriftCheckLocation:
    """Return the location of the drift check. It may reach server and gateway, besides its usual targets."""
    egress = (
        _allow_pods_egress(spec, SERVER, SERVER_PORT),
        _allow_pods_egress(spec, GATEWAY, spec.gateway.listen_port),
    )
    return DriftCheckLocation(spec.namespace, f"{spec.name}-drift", egress, ClusterSettings(dns=spec.kubernetes.dns))


def _drift_check_pods(spec: PlatformSpec) -> list[Rule]:
    return [{"podSelector": {"matchLabels": locate_drift_check(spec).selector}}] if spec.drift_check else []


def _server_ingress(spec: PlatformSpec) -> list[Rule]:
    """Allow the gateway, administrators and the drift check. Tenants are not among them."""
    rules = [_allow([_pods(spec, GATEWAY), *_clients(spec.management), *_drift_check_pods(spec)], SERVER_PORT)]
    if spec.server.monitoring_namespace:
        rules.append(_allow(_namespaces([spec.server.monitoring_namespace]), METRICS_PORT))
    return rules


def _server_egress(spec: PlatformSpec) -> list[Rule]:
    """Allow the database, permissions, and any address by HTTPS: stores, roles, identity providers and the API."""
    secrets, events = spec.database.secrets, spec.server.events
    oidc = spec.server.authentication.oidc
    providers = spec.server.authentication.providers.values()
    urls = [
        "https://any.example",
        *spec.server.egress,
        *([oidc.provider_uri] if oidc else []),
        *(provider.provider_uri for provider in providers),
        *([url] if (url := getattr(secrets, "url", None)) else []),
    ]
    rules = [*_database_egress(spec), *(allow_egress(url) for url in urls)]
    if spec.server.authentication.kubernetes:
        # The API server may listen on another port than its Service.
        rules.append(allow_egress("https://any.example:6443"))
    if spec.aws and spec.aws.kind == "pod-identity":
        rules.append({"to": [{"ipBlock": {"cidr": _POD_IDENTITY}}], "ports": [{"protocol": "TCP", "port": 80}]})
    if events.nats:
        rules.append(allow_egress(events.nats.address))
    if events.kafka:
        rules += [allow_egress(url) for url in events.kafka.broker_urls]
    return _drop_duplicates(rules)


def _migration_egress(spec: PlatformSpec) -> list[Rule]:
    """Allow the database and OpenFGA, and what a proxy to the database in the pod needs: any address by HTTPS."""
    rules = _database_egress(spec)
    if spec.server.extra_pod_parts.sidecars:
        rules += [allow_egress(url) for url in ("https://any.example", *spec.server.egress)]
    return _drop_duplicates(rules)


def _database_egress(spec: PlatformSpec) -> list[Rule]:
    """Allow requests to the database and OpenFGA."""
    rules = allow_dns(spec.kubernetes.dns)
    if postgres := spec.database.postgres:
        rules += [allow_egress(f"https://{host}:{postgres.port}") for host in postgres.remote_hosts]
    else:
        rules.append(_allow_pods_egress(spec, POSTGRES, POSTGRES_PORT))
    openfga = spec.server.authorization.openfga
    if openfga and openfga.server:
        rules.append(_allow_pods_egress(spec, OPENFGA, OPENFGA_PORT))
    elif openfga and openfga.endpoint:
        rules.append(allow_egress(openfga.endpoint))
        if credentials := openfga.client_credentials:
            rules.append(allow_egress(credentials.token_endpoint))
    return _drop_duplicates(rules)


def _openfga_database(spec: PlatformSpec) -> list[Rule]:
    openfga = spec.server.authorization.openfga
    if openfga and openfga.server and openfga.server.database_uri:
        # The address is within the secret, so a setting names its port.
        return [allow_egress(f"https://any.example:{openfga.server.database_port}")]
    return [_allow_pods_egress(spec, POSTGRES, POSTGRES_PORT)]


def _gateway_ingress(spec: PlatformSpec) -> list[Rule]:
    tenants: Rule = {"namespaceSelector": {"matchExpressions": [{"key": TENANT_LABEL, "operator": "Exists"}]}}
    return [_allow([tenants, *_clients(spec.gateway), *_drift_check_pods(spec)], spec.gateway.listen_port)]


def _gateway_egress(spec: PlatformSpec) -> list[Rule]:
    return [*allow_dns(spec.kubernetes.dns), _allow_pods_egress(spec, SERVER, SERVER_PORT)]


def _policy(spec: PlatformSpec, name: str, component: str, ingress: list[Rule], egress: list[Rule]) -> Manifest:
    return make_object(
        spec,
        "networking.k8s.io/v1",
        "NetworkPolicy",
        name,
        component,
        spec={
            "podSelector": {"matchLabels": component_labels(spec, component)},
            "policyTypes": ["Ingress", "Egress"],
            # The API server drops empty lists, which a refresh would report as a change.
            **({"ingress": ingress} if ingress else {}),
            **({"egress": egress} if egress else {}),
        },
    )


def _pods(spec: PlatformSpec, component: str) -> Rule:
    return {"podSelector": {"matchLabels": component_labels(spec, component)}}


def _namespaces(names: Iterable[str]) -> list[Rule]:
    return [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}} for name in names]


def _clients(settings: GatewaySettings | ManagementAccess) -> list[Rule]:
    """Return the namespaces and networks that settings allow to connect: of clients, and of a route's controller."""
    route = settings.route
    controllers = [route.controller_namespace] if route and route.controller_namespace else []
    blocks = [{"ipBlock": {"cidr": cidr}} for cidr in settings.client_cidrs]
    return [*_namespaces([*settings.client_namespaces, *controllers]), *blocks]


def _allow(callers: list[Rule], port: int) -> Rule:
    return {"from": callers, "ports": [{"protocol": "TCP", "port": port}]}


def _allow_pods_egress(spec: PlatformSpec, component: str, port: int) -> Rule:
    return {"to": [_pods(spec, component)], "ports": [{"protocol": "TCP", "port": port}]}


def _drop_duplicates(rules: list[Rule]) -> list[Rule]:
    distinct_rules: list[Rule] = []
    for rule in rules:
        if rule not in distinct_rules:
            distinct_rules.append(rule)
    return distinct_rules
