"""The providers of a deployment: start their plugins, configure them, and end them with the deployment."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lakewright_engine.model.errors import ProviderError
from lakewright_engine.model.resources import Properties, ResourceState
from lakewright_engine.model.urns import is_provider_type, provider_package
from lakewright_engine.processes import rpc
from lakewright_engine.processes.child_process import ChildProcess, StartedProcess, parent_bound_command
from lakewright_engine.processes.forkserver import ForkServer
from lakewright_engine.processes.sockets import SocketFolder
from lakewright_engine.providers.plugins import Plugin, find_attached_port, find_plugin
from lakewright_engine.providers.provider import Provider

DYNAMIC = "pulumi-python"
BUILTIN = "pulumi"

FindState = Callable[[str], ResourceState | None]
"""Returns a provider resource by its reference, `URN::ID`."""


class Registry:
    """Providers by reference (`URN::ID`). A plugin process serves one provider resource and ends with the run."""

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
        engine: Callable[[], str],
        sockets: SocketFolder,
        in_sandbox: bool,
        verbose: bool,
    ) -> None:
        """Create an empty registry for a run."""
        self._project = project
        self._root = root
        self._program = program
        self._forks = forks
        self._builtin = builtin
        self._find = find
        self._log = log
        self._engine = engine
        self._sockets = sockets
        self._in_sandbox = in_sandbox
        self._verbose = verbose
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._loaded: dict[str, Provider] = {}
        self._configured: dict[str, Provider] = {}
        self._children: list[ChildProcess] = []
        self._closed = False
        self.environment: dict[str, str] = {}
        """Additional environment variables of plugin processes."""

    def start_ahead(self, resources: list[ResourceState]) -> None:
        """Start the plugins of the state's providers in the background."""
        for state in resources:
            if is_provider_type(state.type) and not state.delete:
                threading.Thread(target=self._start_quietly, args=(state,), daemon=True, name="start-ahead").start()

    def _start_quietly(self, state: ResourceState) -> None:
        # `get` starts the provider again when it is needed, and reports the error.
        with contextlib.suppress(ProviderError):
            self.load(f"{state.urn}::{state.id}", state.type, state.inputs)

    def load(self, reference: str, type_: str, inputs: Properties) -> Provider:
        """Return the started plugin of a provider resource, which may not be configured yet.

        A replaced provider and its replacement have the same URN and different ids, and a plugin each.
        """
        with self._lock:
            lock = self._locks.setdefault(reference, threading.Lock())
        with lock:
            if self._closed:
                raise ProviderError("the deployment has ended")
            if reference not in self._loaded:
                self._loaded[reference] = self._start(provider_package(type_), inputs)
            return self._loaded[reference]

    def configure(self, urn: str, object_id: str, inputs: Properties, provider: Provider) -> None:
        """Configure the provider and register it under the reference `URN::ID`."""
        config = {key: value for key, value in inputs.items() if key != "__internal"}
        provider.configure(urn, object_id, config)
        with self._lock:
            self._configured[f"{urn}::{object_id}"] = provider

    def is_configured(self, urn: str, object_id: str) -> bool:
        """Return whether a provider is configured."""
        with self._lock:
            return f"{urn}::{object_id}" in self._configured

    def get(self, reference: str) -> Provider:
        """Return the provider of a reference.

        A provider that only the state has is started and configured as before.
        """
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

    def cancel(self) -> None:
        """Request every provider to end its calls early. Return at once."""
        with self._lock:
            providers = [*self._loaded.values()]
        for provider in providers:
            threading.Thread(target=_cancel_quietly, args=(provider,), daemon=True, name="cancel").start()

    def close(self) -> None:
        """End all plugins. No further plugin can be started."""
        with self._lock:
            self._closed = True
            children, self._children = self._children, []
        for child in children:
            child.kill()

    def _start(self, package: str, inputs: Properties) -> Provider:
        if package == BUILTIN:
            return self._builtin
        engine = self._engine()
        port = find_attached_port(package)
        if port is not None:
            provider = Provider(package, rpc.provider_stub(rpc.channel(f"127.0.0.1:{port}")))
            provider.handshake(engine, None, None)
            provider.attach(engine)
            return provider
        plugin = None if package == DYNAMIC else find_plugin(package, inputs, in_sandbox=self._in_sandbox)
        # An installed plugin chooses a port itself, as under the CLI. Others listen where no other user can call them.
        address = "" if plugin is not None and plugin.binary is not None else self._sockets.new_address("provider")
        child = self._start_child(package, plugin, engine, address)
        with self._lock:
            self._children.append(child)
            closed = self._closed
        if closed:
            child.kill()
        port = child.read_port()
        stub = rpc.provider_stub(rpc.channel(address or f"127.0.0.1:{port}"))
        provider = Provider(package, stub, lambda: "" if self._closed else child.describe_exit())
        if plugin is not None and plugin.binary is not None:
            provider.handshake(engine, str(plugin.binary.parent), str(plugin.binary.parent))
        else:
            provider.handshake(engine, str(self._root), str(self._program))
        return provider

    def _start_child(self, package: str, plugin: Plugin | None, engine: str, address: str) -> ChildProcess:
        name, env = f"provider {package!r}", self._environment()
        if plugin is None:
            request: dict[str, Any] = {"module": "pulumi.dynamic", "arguments": [engine], "address": address}
            return self._forks.start(request, self._program, env, self._output, name)
        if plugin.binary is not None:
            # As with the CLI, the output of an installed plugin is for its authors. Users read its log messages.
            on_line = self._output if self._verbose else _ignore
            return StartedProcess(parent_bound_command([str(plugin.binary), engine]), self._program, env, on_line, name)
        arguments = [package, "--address", address, engine]
        if self._forks.is_own_interpreter:
            request = {"module": plugin.module, "arguments": arguments}
            return self._forks.start(request, self._program, env, self._output, name)
        command = parent_bound_command([sys.executable, "-m", plugin.module, *arguments])
        return StartedProcess(command, self._program, env, self._output, name)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment, "PULUMI_PROJECT": self._project, "PYTHONUNBUFFERED": "1"}

    def _output(self, line: str, *, error: bool) -> None:
        if error and line.strip():
            self._log(line)


def _cancel_quietly(provider: Provider) -> None:
    # A provider that cannot be cancelled finishes its calls.
    with contextlib.suppress(ProviderError):
        provider.cancel()


def _ignore(line: str, *, error: bool) -> None:
    """Discard a line."""
