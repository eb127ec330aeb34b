"""Which provider serves a resource: finds its plugin, starts it, configures it, and ends it with the deployment."""

from __future__ import annotations

import contextlib
import importlib.util
import ipaddress
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from lakewright_engine import wire
from lakewright_engine.errors import ProviderError
from lakewright_engine.forkserver import ForkServer
from lakewright_engine.launch import Child, StartedChild, tied_command
from lakewright_engine.model import Properties, ResourceState, Value
from lakewright_engine.properties import has_unknown, without_secrets
from lakewright_engine.providers import Provider
from lakewright_engine.urns import is_provider_type, provider_package

DYNAMIC = "pulumi-python"
BUILTIN = "pulumi"
_SANDBOX = "lakewright_sandbox"
_SANDBOX_PACKAGES = ("aws", "kubernetes")

FindState = Callable[[str], ResourceState | None]
"""Looks up a provider resource by its reference, `URN::ID`."""


class Registry:
    """Providers by reference (`URN::ID`). A plugin process serves one provider resource, and ends with the run."""

    def __init__(
        self,
        *,
        project: str,
        root: Path,
        program: Path,
        forks: ForkServer,
        builtin: Provider,
        find: FindState,
        log: Callable[[str], None],
    ) -> None:
        self._project = project
        self._root = root
        self._program = program
        self._forks = forks
        self._builtin = builtin
        self._find = find
        self._log = log
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._loaded: dict[str, Provider] = {}
        self._configured: dict[str, Provider] = {}
        self._children: list[Child] = []
        self._closed = False

    def start_ahead(self, resources: list[ResourceState]) -> None:
        """Starts the plugins of the state's providers, so that they are there when they are needed."""
        for state in resources:
            if is_provider_type(state.type) and not state.delete:
                threading.Thread(target=self._start_quietly, args=(state,), daemon=True, name="start-ahead").start()

    def _start_quietly(self, state: ResourceState) -> None:
        # Whoever needs the provider starts it again, and tells why it cannot be.
        with contextlib.suppress(ProviderError):
            self.load(f"{state.urn}::{state.id}", state.type, state.inputs)

    def load(self, reference: str, type_: str, inputs: Properties) -> Provider:
        """The plugin of a provider resource, started but perhaps not configured.

        A replaced provider and the one in its place have the same URN and a plugin each: their ids differ.
        """
        with self._lock:
            lock = self._locks.setdefault(reference, threading.Lock())
        with lock:
            if self._closed:
                raise ProviderError("the deployment has ended")
            if reference not in self._loaded:
                provider = self._start(provider_package(type_), inputs)
                provider.handshake(str(self._root), str(self._program))
                self._loaded[reference] = provider
            return self._loaded[reference]

    def configure(self, urn: str, object_id: str, inputs: Properties, provider: Provider) -> None:
        """Configures the provider and makes it the one that the reference `URN::ID` means."""
        config = {key: value for key, value in inputs.items() if key != "__internal"}
        provider.configure(urn, object_id, config)
        with self._lock:
            self._configured[f"{urn}::{object_id}"] = provider

    def is_configured(self, urn: str, object_id: str) -> bool:
        with self._lock:
            return f"{urn}::{object_id}" in self._configured

    def get(self, reference: str) -> Provider:
        """The provider of a resource; one that only the state knows is started and configured as it was."""
        with self._lock:
            provider = self._configured.get(reference)
        if provider is not None:
            return provider
        state = self._find(reference)
        if state is None:
            raise ProviderError(f"the provider {reference} is neither in the state nor in the program")
        reference = f"{state.urn}::{state.id}"
        provider = self.load(reference, state.type, state.inputs)
        with self._lock:
            lock = self._locks[reference]
        with lock:
            if reference not in self._configured:
                self.configure(state.urn, state.id, state.inputs, provider)
        return self._configured[reference]

    def close(self) -> None:
        with self._lock:
            self._closed = True
            children, self._children = self._children, []
        for child in children:
            child.kill()

    def _start(self, package: str, inputs: Properties) -> Provider:
        if package == BUILTIN:
            return self._builtin
        port = _attached_port(package)
        if port is not None:
            address = f"127.0.0.1:{port}"
            stub = wire.provider_stub(wire.channel(address))
            wire.call(stub.Attach, wire.plugin_messages.PluginAttach(address=address))
            return Provider(package, stub)
        child = self._start_child(package, inputs)
        with self._lock:
            self._children.append(child)
            closed = self._closed
        if closed:
            child.kill()
        return Provider(package, wire.provider_stub(wire.channel(f"127.0.0.1:{child.read_port()}")))

    def _start_child(self, package: str, inputs: Properties) -> Child:
        name, env = f"provider {package!r}", self._environment()
        if package == DYNAMIC:
            request: dict[str, Any] = {"module": "pulumi.dynamic", "arguments": []}
            return self._forks.start(request, self._program, env, self._output, name)
        command = tied_command(self._command(package, inputs))
        return StartedChild(command, self._program, env, self._output, name)

    def _command(self, package: str, inputs: Properties) -> list[str]:
        binary = _installed_plugin(package, _text(inputs.get("version")))
        if binary is not None:
            return [str(binary)]
        if package in _SANDBOX_PACKAGES and importlib.util.find_spec(_SANDBOX) is not None:
            require_sandbox_target(package, inputs)
            return [sys.executable, "-m", f"{_SANDBOX}.providers", package]
        raise ProviderError(
            f"no provider for the package {package!r}: install its plugin "
            f"(`pulumi plugin install resource {package}`), or put pulumi-resource-{package} on the PATH"
        )

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PULUMI_PROJECT": self._project, "PYTHONUNBUFFERED": "1"}

    def _output(self, line: str, error: bool) -> None:
        if error and line.strip():
            self._log(line)


def require_sandbox_target(package: str, inputs: Properties) -> None:
    """Raises ProviderError unless the provider's configuration keeps it on this machine."""
    if package == "kubernetes":
        # Without a directory to render to, the provider itself refuses every cluster but a sandbox's.
        return
    endpoints = without_secrets(inputs.get("endpoints"))
    if has_unknown(endpoints):
        return
    urls = list(_urls(endpoints))
    if not urls or not all(_is_loopback(url) for url in urls):
        raise ProviderError(
            f"the sandbox's {package} provider only talks to a running sandbox: all of the provider's `endpoints` "
            f"must be on this machine (found: {', '.join(urls) or 'none'}); for a real account install the plugin "
            f"(`pulumi plugin install resource {package}`)"
        )


def _urls(endpoints: Value) -> list[str]:
    if isinstance(endpoints, str):
        try:
            endpoints = cast("Value", json.loads(endpoints)) if endpoints else []
        except ValueError:
            return [endpoints]
    parts = endpoints if isinstance(endpoints, list) else [endpoints]
    return [str(url) for part in parts if isinstance(part, dict) for url in part.values() if url]


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _attached_port(package: str) -> int | None:
    for entry in os.environ.get("PULUMI_DEBUG_PROVIDERS", "").split(","):
        name, _, port = entry.partition(":")
        if name == package and port.isdigit():
            return int(port)
    return None


def _installed_plugin(package: str, version: str) -> Path | None:
    """The plugin on the PATH, else the wanted (or newest) one that `pulumi plugin install` put down."""
    name = f"pulumi-resource-{package}"
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidate = Path(folder or ".") / name
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return candidate
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    installed = {path.name.rpartition("-v")[2]: path / name for path in home.glob(f"plugins/resource-{package}-v*")}
    if version in installed:
        return installed[version]
    newest = sorted(installed, key=lambda text: [int(part) for part in text.split("-")[0].split(".") if part.isdigit()])
    return installed[newest[-1]] if newest and not version else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
