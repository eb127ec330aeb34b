"""The `pulumirpc.Engine` service: what the program and provider plugins log, shown as the engine's own events."""

from __future__ import annotations

import threading
from typing import Any

from lakewright_engine.processes import rpc
from lakewright_engine.processes.sockets import SocketFolder
from lakewright_engine.steps.deployment import Deployment

_SEVERITIES = ("debug", "info", "warning", "error")
_PLUGIN_CALLS_AT_A_TIME = 16


class EngineService(rpc.EngineServicer):
    """Serve the engine to one kind of client. Messages of severity `debug` are left out, as by the CLI."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._root_urn = ""

    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        severity = _SEVERITIES[int(request.severity)]
        if severity != "debug":
            self.log(severity, request)
        return rpc.EMPTY

    def log(self, severity: str, request: Any) -> None:
        self._deployment.events.diagnostic(
            severity, request.message, request.urn, stream=request.streamId, ephemeral=request.ephemeral
        )

    def GetRootResource(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        return rpc.engine_messages.GetRootResourceResponse(urn=self._root_urn)

    def SetRootResource(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        self._root_urn = request.urn
        return rpc.engine_messages.SetRootResourceResponse()

    def RequirePulumiVersion(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Accept any range: the engine goes with the SDK beside it, whatever CLI version a program asks for."""
        return rpc.engine_messages.RequirePulumiVersionResponse()


class ProgramEngine(EngineService):
    """The engine that the program talks to."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(deployment)
        self.logged_error = False

    def log(self, severity: str, request: Any) -> None:
        if severity == "error":
            self.logged_error = True
        # A program that is ended in the middle of its work reports errors that are no news.
        if not self._deployment.failed:
            super().log(severity, request)


class PluginEngine:
    """The engine that provider plugins talk to. It lives as long as the run and starts with the first plugin."""

    def __init__(self, deployment: Deployment, sockets: SocketFolder) -> None:
        self._service = EngineService(deployment)
        self._lock = threading.Lock()
        self._server: Any = None
        self._address = sockets.new_address("engine")

    def address(self) -> str:
        """Return the gRPC address; start the server if nobody has asked before."""
        with self._lock:
            if self._server is None:
                self._server = rpc.serve_engine(self._service, self._address, _PLUGIN_CALLS_AT_A_TIME)
            return self._address

    def stop(self) -> None:
        with self._lock:
            if self._server is not None:
                self._server.stop(None)
