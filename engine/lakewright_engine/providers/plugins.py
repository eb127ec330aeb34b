"""Find a provider's plugin: attached by the user, installed as by the CLI, or part of the sandbox."""

from __future__ import annotations

import importlib.util
import ipaddress
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from lakewright_engine.model.errors import ProviderError
from lakewright_engine.model.properties import has_unknown, plaintext
from lakewright_engine.model.resources import Properties, Value

_SANDBOX = "lakewright_sandbox"
_SANDBOX_PACKAGES = ("aws", "kubernetes")


@dataclass(frozen=True)
class Plugin:
    """A plugin that the engine can start."""

    binary: Path | None = None
    """The installed file; None for providers of the sandbox."""
    module: str = ""
    """The module of a provider of the sandbox, which runs in this interpreter."""


def find_plugin(package: str, inputs: Properties, *, in_sandbox: bool) -> Plugin:
    """Return the plugin for a provider resource.

    Args:
        package: The provider's package, such as `aws`.
        inputs: The provider's configuration.
        in_sandbox: Whether the stack's environment is a sandbox. Its providers then take precedence over installed
            plugins, except for a provider of a cluster, which an installed plugin can reach too.

    Raises:
        ProviderError: No plugin is installed, and the sandbox has no provider for the package and configuration.
    """
    from_sandbox = package in _SANDBOX_PACKAGES and importlib.util.find_spec(_SANDBOX) is not None
    sandbox = Plugin(module=f"{_SANDBOX}.providers")
    if from_sandbox and in_sandbox and not _reaches_cluster(package, inputs) and not _why_not_sandbox(package, inputs):
        return sandbox
    version = _read_version(inputs)
    binary = _find_installed_plugin(package, version)
    if binary is not None:
        return Plugin(binary)
    if not from_sandbox:
        raise ProviderError(
            f"no provider for the package {package!r}: install its plugin "
            f"({_format_installation(package, inputs)}), or put pulumi-resource-{package} on the PATH"
        )
    if reason := _why_not_sandbox(package, inputs):
        raise ProviderError(reason)
    return sandbox


def find_attached_port(package: str) -> int | None:
    """Return the port of a provider that the user has started, from PULUMI_DEBUG_PROVIDERS."""
    for entry in os.environ.get("PULUMI_DEBUG_PROVIDERS", "").split(","):
        name, _, port = entry.partition(":")
        if name == package and port.isdigit():
            return int(port)
    return None


def _reaches_cluster(package: str, inputs: Properties) -> bool:
    return package == "kubernetes" and inputs.get("renderYamlToDirectory") in (None, "")


def _why_not_sandbox(package: str, inputs: Properties) -> str:
    """Return why the sandbox's provider cannot serve a configuration; empty if its endpoints are on this machine."""
    if package == "kubernetes":
        # Without a directory to render to, the provider itself refuses clusters other than a sandbox's.
        return ""
    endpoints = plaintext(inputs.get("endpoints"))
    urls = [] if has_unknown(endpoints) else list(_urls(endpoints))
    if has_unknown(endpoints) or (urls and all(_is_loopback(url) for url in urls)):
        return ""
    return (
        f"the sandbox's {package} provider only talks to a running sandbox: all of the provider's `endpoints` "
        f"must be on this machine (found: {', '.join(urls) or 'none'}); for a real account install the plugin "
        f"({_format_installation(package, inputs)})"
    )


def _format_installation(package: str, inputs: Properties) -> str:
    """Return the command that installs the version that the SDK needs, in backticks."""
    return f"`{' '.join(['pulumi plugin install resource', package, _read_version(inputs)]).rstrip()}`"


def _read_version(inputs: Properties) -> str:
    version = inputs.get("version")
    return version if isinstance(version, str) else ""


def _urls(endpoints: Value) -> Iterator[str]:
    if isinstance(endpoints, str):
        try:
            endpoints = cast("Value", json.loads(endpoints)) if endpoints else []
        except ValueError:
            yield endpoints
            return
    parts = endpoints if isinstance(endpoints, list) else [endpoints]
    for part in parts:
        if isinstance(part, dict):
            yield from (str(url) for url in part.values() if url)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _find_installed_plugin(package: str, version: str) -> Path | None:
    """Return the plugin on the PATH, else the given or newest version that `pulumi plugin install` installed."""
    name = f"pulumi-resource-{package}"
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidate = Path(folder or ".") / name
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return candidate
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    # The CLI keeps files such as `resource-aws-v7.51.0.lock` beside the folders.
    folders = [path for path in home.glob(f"plugins/resource-{package}-v*") if (path / name).is_file()]
    installed = {path.name.rpartition("-v")[2]: path / name for path in folders}
    if version in installed:
        return installed[version]
    newest = sorted(installed, key=lambda text: [int(part) for part in text.split("-")[0].split(".") if part.isdigit()])
    return installed[newest[-1]] if newest and not version else None
