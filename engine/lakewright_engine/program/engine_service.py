"""The `pulumirpc.Engine` service: log messages of the program and of provider plugins become engine events."""

from __future__ import annotations

import threading
from typing import Any

from lakewright_engine.display.events import Events
from lakewright_engine.processes import rpc
from lakewright_engine.processes.sockets import SocketFolder
from lakewright_engine.steps.deployment import Deployment

_SEVERITIES = ("debug", "info", "warning", "error")
_CONCURRENT_PLUGIN_CALLS = 16


class EngineService(rpc.EngineServicer):
    """The service for one kind of client. Debug messages are left out, as by the CLI."""

    def __init__(self, events: Events) -> None:
        """Log to the events of a run."""
        self._events = events
        self._root_urn = ""

    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Report a message as an engine event."""
        severity = _SEVERITIES[int(request.severity)]
        if severity != "debug":
            self.log(severity, request)
        return rpc.EMPTY

    def log(self, severity: str, request: Any) -> None:
        """Report a message that is not a debug message."""
        self._events.diagnostic(
            severity, request.message, request.urn, stream=request.streamId, ephemeral=request.ephemeral
        )

    def GetRootResource(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Return the URN of the stack."""
        return rpc.engine_messages.GetRootResourceResponse(urn=self._root_urn)

    def SetRootResource(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Record the URN of the stack."""
        self._root_urn = request.urn
        return rpc.engine_messages.SetRootResourceResponse()

    def RequirePulumiVersion(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Accept any range of CLI versions: the engine fits the SDK that is installed with it."""
        return rpc.engine_messages.RequirePulumiVersionResponse()


class ProgramEngine(EngineService):
    """The service for the program."""

    def __init__(self, deployment: Deployment) -> None:
        """Log to the events of a deployment."""
        super().__init__(deployment.events)
        self._deployment = deployment
        self.logged_error = False

    def log(self, severity: str, request: Any) -> None:
        """Report a message, and record whether it was an error."""
        if severity == "error":
            self.logged_error = True
        # A program that is ended early reports errors that follow from it.
        if not self._deployment.failed:
            super().log(severity, request)


class PluginEngine:
    """The service for provider plugins. It starts with the first plugin and ends with the run."""

    def __init__(self, events: Events, sockets: SocketFolder) -> None:
        """Log to the events of a run. Reserve an address in the socket folder."""
        self._service = EngineService(events)
        self._lock = threading.Lock()
        self._server: Any = None
        self._address = sockets.new_address("engine")

    def address(self) -> str:
        """Return the gRPC address. Start the server at the first call."""
        with self._lock:
            if self._server is None:
                self._server = rpc.serve_engine(self._service, self._address, _CONCURRENT_PLUGIN_CALLS)
            return self._address

    def stop(self) -> None:
        """Stop the server."""
        with self._lock:
            if self._server is not None:
                self._server.stop(None)
