"""Read objects of many stacks through their providers, outside of a run: for reports that change no state."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Self

from lakewright_engine.display.events import Events
from lakewright_engine.model.errors import ProviderError
from lakewright_engine.model.properties import plaintext_properties
from lakewright_engine.model.resources import Properties, ResourceState
from lakewright_engine.processes.forkserver import ForkServer
from lakewright_engine.processes.sockets import SocketFolder
from lakewright_engine.program.engine_service import PluginEngine
from lakewright_engine.project.project import PulumiProject
from lakewright_engine.providers.builtin import BuiltinProvider
from lakewright_engine.providers.provider import Provider
from lakewright_engine.providers.registry import Registry
from lakewright_engine.steps.object_read import ObjectRead, read_object


class ObjectReader:
    """Providers that read objects. Stacks whose providers have the same configuration share a plugin process.

    Plugins start with the first read, in any thread, and end with the `with` block.
    """

    def __init__(self, project: PulumiProject, *, in_sandbox: bool, log: Callable[[str], None]) -> None:
        """Prepare a reader.

        Args:
            project: The project of the stacks.
            in_sandbox: Whether the stacks' environments are sandboxes, as in `Operation`.
            log: Receives warnings and errors of the plugins.
        """
        self._project = project
        self._in_sandbox = in_sandbox
        self._log = log
        self._lock = threading.Lock()
        self._resources = ExitStack()
        self._registry: Registry | None = None
        self._shared: dict[str, ResourceState] = {}
        """Provider resources by type and configuration. Resources with an equal configuration share one provider."""

    def __enter__(self) -> Self:
        """Return the reader."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the plugins."""
        self._resources.close()

    def read(self, resource: ResourceState, provider: ResourceState) -> ObjectRead:
        """Read the object of a resource, as a refresh of its stack does.

        Args:
            resource: The resource.
            provider: The provider resource of its state.

        Raises:
            EngineError: The provider cannot be started, or cannot read the object.
        """
        return read_object(self._provider(provider), resource)

    def _provider(self, state: ResourceState) -> Provider:
        configuration = json.dumps(plaintext_properties(state.inputs), sort_keys=True, default=repr)
        with self._lock:
            shared = self._shared.setdefault(f"{state.type} {configuration}", state)
            if self._registry is None:
                self._registry = self._open()
        return self._registry.get(_reference(shared))

    def _open(self) -> Registry:
        project = self._project
        interpreter = str(project.python) if project.python is not None else sys.executable
        sockets = self._resources.enter_context(SocketFolder())
        engine = PluginEngine(Events(self._log_event, planning=True, refreshing=True), sockets)
        self._resources.callback(engine.stop)
        forks = self._resources.enter_context(ForkServer(interpreter, project.working_directory))
        registry = Registry(
            project=project.name,
            root=project.root,
            program=project.working_directory,
            forks=forks,
            builtin=BuiltinProvider(_no_outputs, _no_resource),
            find=self._find,
            log=self._log,
            engine=engine.address,
            sockets=sockets,
            in_sandbox=self._in_sandbox,
            verbose=False,
        )
        self._resources.callback(registry.close)
        return registry

    def _find(self, reference: str) -> ResourceState | None:
        return next((state for state in [*self._shared.values()] if _reference(state) == reference), None)

    def _log_event(self, event: object) -> None:
        diagnostic = getattr(event, "diagnostic_event", None)
        if diagnostic is not None and diagnostic.severity in ("error", "warning"):
            self._log(str(diagnostic.message).rstrip())


def _reference(state: ResourceState) -> str:
    return f"{state.urn}::{state.id}"


def _no_outputs(name: str) -> Properties:
    raise ProviderError(f"outputs of the stack {name} are not read here")


def _no_resource(_urn: str) -> ResourceState | None:
    return None
