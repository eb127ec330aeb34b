"""Check the settings of a cluster's DNS, which NetworkPolicies allow, against its pods."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from ipaddress import AddressValueError, IPv4Address
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from lakewright.doctor.finding import REQUEST_SECONDS, Finding

if TYPE_CHECKING:
    from lakewright.environment.cluster import Cluster
    from lakewright.platform_stack.settings.platform import PlatformCluster

_NODE_CACHE = "k8s-app=node-local-dns"
"""Label of the pods of NodeLocal DNSCache."""
_LISTEN_OPTION = "localip"
"""Option of NodeLocal DNSCache: its addresses, separated by commas."""


def check_dns(cluster: Cluster | PlatformCluster, owner: str) -> list[Finding]:
    """Check that the settings of the cluster's DNS name its pods, their port and the caches of nodes.

    Return no finding if the cluster does not respond, or if this identity may not list pods.

    Args:
        cluster: The settings.
        owner: The owner of the settings, such as `the environment`.
    """
    if cluster.render_to:
        return []
    import kubernetes  # noqa: PLC0415 - slow to load
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    client, config = cast(Any, kubernetes).client, cast(Any, kubernetes).config
    dns = cluster.dns
    selector = ",".join(f"{key}={value}" for key, value in sorted(dns.labels.items()))
    try:
        core = client.CoreV1Api(config.new_client_from_config(context=cluster.context))
        servers = core.list_namespaced_pod(
            dns.namespace, label_selector=selector, _request_timeout=REQUEST_SECONDS
        ).items
        caches = core.list_namespaced_pod(
            "kube-system", label_selector=_NODE_CACHE, _request_timeout=REQUEST_SECONDS
        ).items
    except (config.ConfigException, client.ApiException, HTTPError, OSError):
        return []
    if not servers:
        result = f"no pod in {dns.namespace} has the labels {selector}, so pods could not resolve names"
        fix = f"set `kubernetes.dns` of {owner}; on OpenShift: namespace openshift-dns, port 5353"
        return [_report_missing(result, fix)]
    problems: list[Finding] = []
    ports = find_dns_ports(servers)
    if ports and dns.port not in ports:
        pod_ports = " and ".join(str(port) for port in sorted(ports))
        result = f"pods in {dns.namespace} serve DNS at port {pod_ports}, NetworkPolicies allow port {dns.port}"
        problems.append(_report_missing(result, f"set `kubernetes.dns.port: {min(ports)}`"))
    if caches:
        addresses = find_cache_addresses(caches) or dns.node_caches or [IPv4Address("169.254.20.10")]
        if not {*addresses} <= {*dns.node_caches}:
            result = "nodes have NodeLocal DNSCache, whose address NetworkPolicies do not allow"
            address_list = ", ".join(str(address) for address in addresses)
            problems.append(_report_missing(result, f"set `kubernetes.dns.node_caches: [{address_list}]`"))
    return problems or [Finding("Kubernetes DNS", "ok", f"{len(servers)} pods in {dns.namespace}")]


def find_dns_ports(pods: Sequence[Any]) -> set[int]:
    """Return the UDP ports named for DNS that pods declare; empty if they declare none."""
    ports = [
        port for pod in pods for container in pod.spec.containers for port in cast(list[Any], container.ports or [])
    ]
    return {port.container_port for port in ports if port.protocol == "UDP" and (port.name or "").startswith("dns")}


def find_cache_addresses(pods: Sequence[Any]) -> list[IPv4Address]:
    """Return the link-local addresses at which pods of NodeLocal DNSCache listen, in order; empty if they name none."""
    containers = [container for pod in pods for container in pod.spec.containers]
    addresses = {address for container in containers for address in _find_listening_addresses(container)}
    return sorted(address for address in addresses if address.is_link_local)


def _find_listening_addresses(container: Any) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses of the option `-localip ADDRESS,...`, without other texts such as `$(VARIABLE)`."""
    command_line: list[str] = [*(container.command or []), *(container.args or [])]
    separate = [part for argument in command_line for part in argument.split("=", 1)]
    for option, value in pairwise(separate):
        if option.lstrip("-") == _LISTEN_OPTION:
            for text in value.split(","):
                with contextlib.suppress(AddressValueError):
                    yield IPv4Address(text.strip())


def _report_missing(result: str, fix: str) -> Finding:
    return Finding("Kubernetes DNS", "missing", result, fix)
