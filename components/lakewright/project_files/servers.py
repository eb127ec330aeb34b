"""The servers of an environment, to compare environments of different names. Pure functions."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lakewright.names.types import normalize_endpoint
from lakewright.validation.documents import as_mapping

_AWS = re.compile(r"s3[.a-z0-9-]*\.amazonaws\.com")
_LAST_DOT = re.compile(r"^(\w+://[^/?#:]+)\.(?=[:/?#]|$)")
"""Matches the address of a host name with a dot at its end, which names the same host."""
_CLUSTER_DOMAINS = (".svc", ".local", ".localhost", ".internal")


@dataclass(frozen=True)
class ServiceAddress:
    """An address, and the network in which it is valid."""

    url: str = ""
    """Empty for AWS, where bucket names are unique across accounts."""
    network: str = ""
    """The cluster, for an address that names another server in another cluster."""

    def __str__(self) -> str:
        """Return the URL."""
        return self.url


AWS = ServiceAddress()


@dataclass(frozen=True)
class Servers:
    """The servers of an environment."""

    lakekeeper: ServiceAddress
    storage: ServiceAddress = AWS
    """AWS, or the endpoint that replaces it."""
    network: str = ""
    """The cluster that the environment deploys to."""

    def store(self, endpoint: str | None) -> ServiceAddress:
        """Return the address of an S3-compatible store, as seen from this environment."""
        return _parse_address(endpoint, self.network) if endpoint else self.storage


def derive_servers(name: str, document: Mapping[str, Any], folder: Path) -> Servers:
    """Return the servers of an environment.

    `LAKEWRIGHT_SANDBOX` is ignored: with it, all environments of the project would be one sandbox.

    Args:
        name: Name of the environment. An environment that cannot be read is compared by its name only.
        document: Content of its file, unchecked.
        folder: Folder of the file.
    """
    lakekeeper = as_mapping(document.get("lakekeeper")).get("endpoint")
    aws = as_mapping(document.get("aws")).get("endpoint")
    sandbox = document.get("sandbox")
    platform = as_mapping(document.get("platform")).get("stack")
    if not isinstance(sandbox, str) and not isinstance(lakekeeper, str) and not isinstance(platform, str):
        return Servers(ServiceAddress(f"environment {name}"), ServiceAddress(f"environment {name}"), name)
    kubernetes = as_mapping(document.get("kubernetes"))
    network = f"{kubernetes.get('context') or ''} {kubernetes.get('render_to') or ''}".strip()
    default = (
        ServiceAddress(f"sandbox {(folder / Path(sandbox).expanduser()).resolve()}")
        if isinstance(sandbox, str)
        else AWS
    )
    shared = ServiceAddress(f"platform {platform}") if isinstance(platform, str) else default
    return Servers(
        _parse_address(lakekeeper, network) if isinstance(lakekeeper, str) else shared,
        _parse_address(aws, network) if isinstance(aws, str) else default,
        network,
    )


def is_same_url(first: str, second: str) -> bool:
    """Return whether two URLs are the same after normalization."""
    return _parse_address(first, "") == _parse_address(second, "")


def is_same_store(first: str | None, second: str | None) -> bool:
    """Return whether two endpoints are of one S3 store. None is AWS."""
    aws = "https://s3.amazonaws.com"
    return is_same_url(first or aws, second or aws)


def _parse_address(url: str, network: str) -> ServiceAddress:
    url = _LAST_DOT.sub(r"\1", url.strip())
    try:
        normal = normalize_endpoint(url, keep_path=True).rstrip("/")
    except ValueError:
        normal = url.strip().rstrip("/")
    host = urlsplit(normal).hostname or ""
    if _AWS.fullmatch(host):
        return AWS
    return ServiceAddress(normal, network if _is_local(host) else "")


def _is_local(host: str) -> bool:
    """Return whether a host may be another server in another cluster, or behind a port forward."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith(_CLUSTER_DOMAINS)
