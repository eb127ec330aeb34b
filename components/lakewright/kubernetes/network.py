"""Rules of NetworkPolicies from addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from lakewright.kubernetes.settings import DEFAULT_CLUSTER, ClusterSettings, DnsSettings
from lakewright.names.host_kinds import METADATA_NETWORKS, HostKind, kind_of_host

_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "kafka": 9092, "nats": 4222, "tls": 4222}
"""Default ports by scheme. NATS with TLS has the scheme `tls`."""
_API_SERVER_PORTS = (443, 6443)
"""Ports of the API server: that of its Service, and that of its own process, which policies apply to."""

Rule = dict[str, Any]


def find_mistake(url: str) -> str | None:
    """Return why pods cannot be allowed to reach a URL; None if they can."""
    host = urlsplit(url).hostname or ""
    if kind_of_host(host) is HostKind.METADATA:
        return f"expected an address other than the cloud's metadata service; found `{host}`, which pods must not reach"
    return None


def allow_dns(dns: DnsSettings = DEFAULT_CLUSTER.dns) -> list[Rule]:
    """Allow requests to the cluster's DNS: its pods, and caches on nodes, which have addresses of their own."""
    pods = {"namespaceSelector": _namespace(dns.namespace), "podSelector": {"matchLabels": {**dns.labels}}}
    # Policies apply to the port of the pods, which differs from the Service's on OpenShift (5353).
    rules: list[Rule] = [{"to": [pods], "ports": [{"protocol": "UDP", "port": dns.port}, _tcp(dns.port)]}]
    if dns.node_caches:
        blocks = [{"ipBlock": {"cidr": f"{address}/32"}} for address in dns.node_caches]
        rules.append({"to": blocks, "ports": [{"protocol": "UDP", "port": 53}, _tcp(53)]})
    return rules


def allow_egress(url: str, cluster: ClusterSettings = DEFAULT_CLUSTER) -> Rule:
    """Allow requests to the address of a URL, as narrowly as a NetworkPolicy can.

    Policies have no host names: a Service of the cluster becomes its namespace, an IP address itself, and any other
    name its port on the networks outside the cluster, except metadata services. A name of two labels counts as outside
    the cluster: it may be a public host, such as `idp.example`.

    Raises:
        ValueError: The host is a metadata service.
    """
    if mistake := find_mistake(url):
        raise ValueError(mistake)
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = _tcp(parts.port or _PORTS.get(parts.scheme, 443))
    blocks = [_make_block(cidr, cluster.cluster_cidrs) for cidr in cluster.outside_cidrs]
    if namespace := _find_namespace(host):
        selector = {"namespaceSelector": _namespace(namespace)}
        # `svc` may also be a label of a domain outside the cluster.
        is_inside = host.rstrip(".").endswith((".svc", ".svc.cluster.local"))
        return {"to": [selector] if is_inside else [selector, *blocks], "ports": [port]}
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return {"to": blocks, "ports": [port]}
    return {"to": [{"ipBlock": {"cidr": f"{address}/{address.max_prefixlen}"}}], "ports": [port]}


def list_egress_rules(urls: Iterable[str], cluster: ClusterSettings = DEFAULT_CLUSTER) -> list[Rule]:
    """Allow requests to DNS, the catalog's gateway and the given addresses, without duplicates, in a stable order."""
    rules = allow_dns(cluster.dns)
    if pods := cluster.catalog_pods:
        target = {"namespaceSelector": _namespace(pods.namespace), "podSelector": {"matchLabels": {**pods.labels}}}
        rules.append({"to": [target], "ports": [_tcp(pods.port)]})
    for url in sorted(urls):
        rule = allow_egress(url, cluster)
        if rule not in rules:
            rules.append(rule)
    return rules


def allow_api_server(cluster: ClusterSettings) -> Rule:
    """Allow requests to the cluster's API server, which no selector of pods or namespaces matches."""
    blocks = [_make_block(cidr, ()) for cidr in cluster.api_server_cidrs]
    return {"to": blocks, "ports": [_tcp(port) for port in _API_SERVER_PORTS]}


def allow_egress_to_pods(labels: dict[str, str], ports: Iterable[int]) -> Rule:
    """Allow requests to pods of the namespace."""
    return {"to": [{"podSelector": {"matchLabels": labels}}], "ports": [_tcp(port) for port in ports]}


def allow_ingress_from_pods(labels: dict[str, str], ports: Iterable[int]) -> Rule:
    """Allow connections from pods of the namespace."""
    return {"from": [{"podSelector": {"matchLabels": labels}}], "ports": [_tcp(port) for port in ports]}


def list_ingress_rules(ports: Iterable[int], clients_namespace: str) -> list[Rule]:
    """Allow connections from the tenant's pods and from the namespace of clients."""
    return [
        {
            "from": [{"podSelector": {}}, {"namespaceSelector": _namespace(clients_namespace)}],
            "ports": [_tcp(port) for port in ports],
        }
    ]


def _find_namespace(host: str) -> str | None:
    """Return the namespace of a Service's name, `[POD.]NAME.NAMESPACE.svc[.CLUSTER_DOMAIN]`; None for other hosts."""
    labels = host.rstrip(".").split(".")
    namespaces = [labels[position - 1] for position in (2, 3) if labels[position : position + 1] == ["svc"]]
    return namespaces[0] if namespaces else None


def _make_block(cidr: str, excluded: Iterable[str]) -> dict[str, Any]:
    """Return a block of addresses without metadata services and the given networks within it."""
    network: Any = ipaddress.ip_network(cidr)
    excluded_networks = [*METADATA_NETWORKS, *(ipaddress.ip_network(text) for text in excluded)]
    inside = [
        str(excluded_network)
        for excluded_network in excluded_networks
        if excluded_network.version == network.version and excluded_network.subnet_of(network)
    ]
    return {"ipBlock": {"cidr": cidr, **({"except": inside} if inside else {})}}


def _tcp(port: int) -> dict[str, Any]:
    return {"protocol": "TCP", "port": port}


def _namespace(name: str) -> dict[str, Any]:
    return {"matchLabels": {"kubernetes.io/metadata.name": name}}
