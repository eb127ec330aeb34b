"""Classify hosts: the metadata service of a cloud, this machine or its cluster, and all others.

Servers resolve more spellings of an address than the dotted one (decimal, hexadecimal, octal, IPv4 within IPv6), so
each is parsed as the C library and the WHATWG URL standard do. Names are compared as text, without DNS.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterator
from enum import Enum
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class HostKind(Enum):
    """The destination of a request to a host."""

    METADATA = "a link-local address or the metadata service of a cloud"
    INTERNAL = "this machine, its network or its cluster"
    ADDRESS = "an IP address"
    NAME = "a name"
    SHORT_NAME = "a name of two labels, as NAME.NAMESPACE is in a cluster"


METADATA_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        "169.254.0.0/16",  # link-local: metadata of AWS, Azure, Google and others, credentials of ECS and EKS pods
        "168.63.129.16/32",  # Azure's WireServer
        "100.100.100.200/32",  # Alibaba Cloud
        "192.0.0.192/32",  # Oracle Cloud
        "fe80::/10",
        "fd00:ec2::/32",  # AWS; `::254` is the metadata service
        "fd20:ce::/32",  # Google
    )
)

METADATA_NAMES = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)
"""Names that resolve to a metadata service without public DNS."""

_EMBEDDED = re.compile(r"(?:^|[.-])(?=((?:\d{1,3}[.-]){3}\d{1,3}|[0-9a-f]{8})(?:[.-]|$))")
"""Matches an IPv4 address within a name, which services such as nip.io and sslip.io resolve."""

_ADDRESS_ZONES = ("nip.io", "sslip.io", "xip.io", "traefik.me", "local-ip.co", "localtls.com")
"""Zones whose names contain the address that they resolve to."""

_INTERNAL_SUFFIXES = ("svc", "cluster.local", "localhost", "localdomain", "local", "internal")
_INTERNAL_NAMES = frozenset({"kubernetes.default"})
_THIS_NETWORK = ipaddress.IPv4Network("0.0.0.0/8")
_LAST_32_BITS_ARE_IPV4 = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "64:ff9b::/96",  # NAT64
        "64:ff9b:1::/48",  # NAT64 of a local network (RFC 8215)
        "::ffff:0:0:0/96",  # translated (RFC 2765)
    )
)
_COMPATIBLE = ipaddress.IPv6Network("::/96")


def kind_of_host(host: str) -> HostKind:
    """Return the kind of a URL's host.

    Args:
        host: A name, or an address without brackets, in any spelling.
    """
    name = host.strip("[]").rstrip(".").casefold()
    if address := _address(name):
        return _kind_of_address(address)
    if name in METADATA_NAMES:
        return HostKind.METADATA
    embedded = {_kind_of_address(address) for address in _find_addresses(name)}
    if HostKind.METADATA in embedded:
        return HostKind.METADATA
    if _is_in_address_zone(name):
        return HostKind.INTERNAL if HostKind.INTERNAL in embedded else HostKind.ADDRESS
    if _is_in_cluster(name):
        return HostKind.INTERNAL
    # A pod's search domains also complete `vault.vault`, a service and its namespace.
    return HostKind.SHORT_NAME if name.count(".") == 1 else HostKind.NAME


def _kind_of_address(address: Address) -> HostKind:
    if any(address in network for network in METADATA_NETWORKS):
        return HostKind.METADATA
    internal = address.is_loopback or address.is_unspecified or address.is_multicast
    return HostKind.INTERNAL if internal or address in _THIS_NETWORK else HostKind.ADDRESS


def _is_in_cluster(name: str) -> bool:
    # A name without a dot is completed by the search domains of a pod, which are the cluster's.
    if "." not in name or name in _INTERNAL_NAMES or ".svc." in name:
        return True
    return any(name.endswith(f".{suffix}") for suffix in _INTERNAL_SUFFIXES)


def _is_in_address_zone(name: str) -> bool:
    return any(name == zone or name.endswith(f".{zone}") for zone in _ADDRESS_ZONES)


def _find_addresses(name: str) -> Iterator[Address]:
    """Yield the addresses within a name. In address zones, each label may be an address in any spelling."""
    for match in _EMBEDDED.finditer(name):
        text = match[1]
        try:
            yield ipaddress.IPv4Address(int(text, 16) if len(text) == 8 and text.isalnum() else text.replace("-", "."))
        except ValueError:
            continue
    if _is_in_address_zone(name):
        for label in name.split("."):
            is_spelled = "-" in label or re.fullmatch(r"\d{8,10}|0x[0-9a-f]+", label)
            if is_spelled and (address := _address(label.replace("-", ":"))):
                yield address


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    name = host.strip("[]").rstrip(".").casefold()
    address = _address(name)
    return address.is_loopback if address else name == "localhost" or name.endswith(".localhost")


def leaves_without_tls(url: str) -> bool:
    """Return whether requests to a URL go to another machine without TLS."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def _address(name: str) -> Address | None:
    """Return the address of a host; None for a name. IPv4 within IPv6 is returned as IPv4."""
    if ":" not in name:
        try:
            # Reads `2852039166`, `0xa9fea9fe`, `0251.0376.0251.0376` and `169.254.43518` as resolvers do.
            return ipaddress.IPv4Address(socket.inet_aton(name)) if re.fullmatch(r"[0-9a-fx.]+", name) else None
        except OSError:
            return None
    try:
        address = ipaddress.IPv6Address(name)
    except ValueError:
        return None
    embedded = address.ipv4_mapped or address.sixtofour
    holds_ipv4 = any(address in network for network in _LAST_32_BITS_ARE_IPV4)
    if embedded is None and (holds_ipv4 or (address in _COMPATIBLE and int(address) > 1)):
        embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return embedded or address
