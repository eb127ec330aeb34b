"""Rules of NetworkPolicies from addresses."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

_METADATA = "169.254.0.0/16"
"""Link-local: the cloud's instance metadata, which provides the node's identity."""

_PORTS = {"http": 80, "https": 443}

Rule = dict[str, Any]


def dns() -> Rule:
    """Allow requests to the cluster's DNS."""
    return {
        "to": [
            {"namespaceSelector": _namespace("kube-system"), "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}
        ],
        "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
    }


def egress_to(url: str) -> Rule:
    """Allow requests to the address of a URL, as narrowly as a NetworkPolicy can.

    Policies have no host names: a Service of the cluster becomes its namespace, an IP address itself, and any other
    name its port on all addresses except the instance metadata.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    port: dict[str, Any] = {"protocol": "TCP", "port": parts.port or _PORTS.get(parts.scheme, 443)}
    labels = host.removesuffix(".cluster.local").split(".")
    if len(labels) == 3 and labels[2] == "svc":
        return {"to": [{"namespaceSelector": _namespace(labels[1])}], "ports": [port]}
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": [_METADATA]}}], "ports": [port]}
    return {"to": [{"ipBlock": {"cidr": f"{address}/{address.max_prefixlen}"}}], "ports": [port]}


def egress(urls: list[str]) -> list[Rule]:
    """Allow requests to DNS and the given addresses, without duplicates, in a stable order."""
    rules = [dns()]
    for url in sorted(urls):
        rule = egress_to(url)
        if rule not in rules:
            rules.append(rule)
    return rules


def ingress(port: int, clients_namespace: str) -> list[Rule]:
    """Allow connections from the tenant's pods and from the namespace of clients."""
    return [
        {
            "from": [{"podSelector": {}}, {"namespaceSelector": _namespace(clients_namespace)}],
            "ports": [{"protocol": "TCP", "port": port}],
        }
    ]


def _namespace(name: str) -> dict[str, Any]:
    return {"matchLabels": {"kubernetes.io/metadata.name": name}}
