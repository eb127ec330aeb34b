"""Evaluate NetworkPolicies: which pods may reach an IP address."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Any

from lakewright.validation.documents import as_list, as_mapping


def allows_egress(
    labels: Mapping[str, str], policies: Iterable[Mapping[str, Any]], address: str, port: int = 80
) -> tuple[bool, str]:
    """Return whether pods may open a TCP connection to an address, and the evidence.

    Source: Kubernetes, "Network Policies": pods that no policy with `Egress` selects are not isolated, and the rules
    of all policies that select a pod add up.

    Args:
        labels: Labels of the pods.
        policies: NetworkPolicies of the pods' namespace.
        address: IPv4 or IPv6 address outside of the cluster.
        port: TCP port.
    """
    selecting = [policy for policy in policies if _selects(as_mapping(policy.get("spec")), labels)]
    isolating = [policy for policy in selecting if _isolates(as_mapping(policy.get("spec")))]
    if not isolating:
        return True, "no NetworkPolicy limits what the pods may reach"
    for policy in isolating:
        for rule in map(as_mapping, as_list(as_mapping(policy.get("spec")).get("egress"))):
            if _opens(rule, ipaddress.ip_address(address), port):
                return True, f"NetworkPolicy {_name(policy)} allows it"
    names = ", ".join(_name(policy) for policy in isolating)
    return False, f"no rule of NetworkPolicy {names} allows it"


def _name(policy: Mapping[str, Any]) -> str:
    return str(as_mapping(policy.get("metadata")).get("name"))


def _isolates(spec: Mapping[str, Any]) -> bool:
    types = as_list(spec.get("policyTypes"))
    return "Egress" in types if types else "egress" in spec


def _selects(spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    selector = as_mapping(spec.get("podSelector"))
    match_labels = as_mapping(selector.get("matchLabels"))
    expressions = map(as_mapping, as_list(selector.get("matchExpressions")))
    return all(labels.get(key) == value for key, value in match_labels.items()) and all(
        _matches_expression(expression, labels) for expression in expressions
    )


def _matches_expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether labels match an expression of a selector. Its negations hold without the label."""
    key, values = str(expression.get("key")), as_list(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":  # codespell:ignore
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def _opens(rule: Mapping[str, Any], address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> bool:
    ports, peers = as_list(rule.get("ports")), as_list(rule.get("to"))
    if ports and not any(_is_port(as_mapping(part), port) for part in ports):
        return False
    return not peers or any(_is_peer(as_mapping(peer), address) for peer in peers)


def _is_port(part: Mapping[str, Any], port: int) -> bool:
    if part.get("protocol", "TCP") != "TCP":
        return False
    first, last = part.get("port"), part.get("endPort")
    if not isinstance(first, int):
        return True  # all ports, or a name that any port may have
    return first <= port <= (last if isinstance(last, int) else first)


def _is_peer(peer: Mapping[str, Any], address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    block = as_mapping(peer.get("ipBlock"))
    if not block:
        return False  # pods and namespaces: the address is outside of the cluster
    inside = address in ipaddress.ip_network(str(block.get("cidr")), strict=False)
    excepted = any(address in ipaddress.ip_network(str(cidr), strict=False) for cidr in as_list(block.get("except")))
    return inside and not excepted
