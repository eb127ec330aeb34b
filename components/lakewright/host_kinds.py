"""What kind of place a host is: the metadata service of a cloud, this machine or its cluster, or anywhere else.

Servers resolve more spellings of an address than the dotted one (decimal, hexadecimal, octal, IPv4 within IPv6), so
each is read as the C library and the WHATWG URL standard read it. Names are judged by their text: no DNS is asked.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from enum import Enum
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class HostKind(Enum):
    """Where a request to a host goes."""

    METADATA = "a link-local address or the metadata service of a cloud"
    INTERNAL = "this machine, its network or its cluster"
    ADDRESS = "an IP address"
    NAME = "a name"


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
"""Names that resolve to a metadata service without any answer of the public DNS."""

_EMBEDDED = re.compile(
    r"(?:^|[.-])(169[.-]254[.-]\d{1,3}[.-]\d{1,3}|168[.-]63[.-]129[.-]16|a9fe[0-9a-f]{4}|a83f8110)(?:[.-]|$)"
)
"""Matches an address within a name, which services such as nip.io and sslip.io resolve to it."""

_INTERNAL_SUFFIXES = ("svc", "cluster.local", "localhost", "localdomain", "local", "internal")
_INTERNAL_NAMES = frozenset({"kubernetes.default"})
_THIS_NETWORK = ipaddress.IPv4Network("0.0.0.0/8")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")


def kind_of_host(host: str) -> HostKind:
    """Return what kind of place a host of a URL is.

    Args:
        host: A name, or an address without brackets, in any spelling.
    """
    name = host.strip("[]").rstrip(".").casefold()
    if address := _address(name):
        if any(address in network for network in METADATA_NETWORKS):
            return HostKind.METADATA
        internal = address.is_loopback or address.is_unspecified or address.is_multicast
        return HostKind.INTERNAL if internal or address in _THIS_NETWORK else HostKind.ADDRESS
    if name in METADATA_NAMES or _EMBEDDED.search(name):
        return HostKind.METADATA
    # A name without a dot is completed by the search domains of a pod, which are the cluster's.
    if "." not in name or name in _INTERNAL_NAMES:
        return HostKind.INTERNAL
    if ".svc." in name or any(name.endswith(f".{suffix}") for suffix in _INTERNAL_SUFFIXES):
        return HostKind.INTERNAL
    return HostKind.NAME


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine: nobody else reads what is sent there."""
    name = host.strip("[]").rstrip(".").casefold()
    address = _address(name)
    return address.is_loopback if address else name == "localhost" or name.endswith(".localhost")


def leaves_without_tls(url: str) -> bool:
    """Return whether what is sent to a URL can be read between this machine and another one."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def _address(name: str) -> Address | None:
    """Return the address that a host spells. IPv4 within IPv6 counts as IPv4; None for a name."""
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
    if embedded is None and (address in _NAT64 or (address in _COMPATIBLE and int(address) > 1)):
        embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return embedded or address
