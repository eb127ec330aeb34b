"""The resource monitor: the gRPC service with which a program registers its resources."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from lakewright_engine.model.assets import add_hashes
from lakewright_engine.model.errors import DeploymentStoppedError, EngineError, HookError
from lakewright_engine.model.properties import (
    flatten_references,
    from_struct,
    has_unknown,
    plaintext_properties,
    to_struct,
)
from lakewright_engine.model.resources import Properties, ResourceState
from lakewright_engine.model.urns import make_urn
from lakewright_engine.planning.planner import Planner
from lakewright_engine.processes import rpc
from lakewright_engine.registration.desired_state import read_desired_state, source_position
from lakewright_engine.registration.transforms import Transforms
from lakewright_engine.steps.deployment import Deployment

_FEATURES = (
    "SECRETS",
    "RESOURCE_REFERENCES",
    "OUTPUT_VALUES",
    "ALIAS_SPECS",
    "REPLACEMENT_TRIGGER",
    "DELETED_WITH",
    "REPLACE_WITH",
    "TRANSFORMS",
    "INVOKE_TRANSFORMS",
    "RESOURCE_HOOKS",
    "ERROR_HOOKS",
)
"""The features that the SDK may use. The SDK itself refuses others: parameterized packages, state migrations."""

Handler = Callable[[Any, Any, Any], Any]

_FAILED_RESPONSES: dict[str, Callable[[str], Any]] = {
    "RegisterResource": lambda urn: rpc.resource_messages.RegisterResourceResponse(urn=urn, result=rpc.FAILED),
    "ReadResource": lambda urn: rpc.resource_messages.ReadResourceResponse(urn=urn, result=rpc.FAILED),
    "RegisterResourceOutputs": lambda _: rpc.EMPTY,
}
"""Responses to failed requests. The program continues, and the outputs of the resource are unknown."""


def _respond(handler: Handler) -> Handler:
    """Let a failed request end the deployment. Its response is that the deployment has ended.

    If the program has hooks, the response is a failed resource instead: the program must live while hooks run, and a
    hook may wait for the resource.
    """

    @functools.wraps(handler)
    def wrapper(self: Monitor, request: Any, context: Any) -> Any:
        self.ready.wait()
        with self.busy():
            try:
                return handler(self, request, context)
            except DeploymentStoppedError:
                pass
            except (EngineError, OSError, ValueError) as error:
                self.deployment.fail(str(error), self.build_urn(request))
            if self.deployment.hooks.registered and (unmet := _FAILED_RESPONSES.get(handler.__name__)) is not None:
                return unmet(self.build_urn(request))
            return rpc.abort_terminated(context)

    return wrapper


class Monitor(rpc.MonitorServicer):
    """The service `pulumirpc.ResourceMonitor`. Each request runs on its own thread and may block."""

    def __init__(self, deployment: Deployment, planner: Planner) -> None:
        """Serve a deployment with a planner."""
        self.deployment = deployment
        self._planner = planner
        self._transforms = Transforms(deployment.callbacks)
        self._parents: dict[str, str] = {}
        self._idle = threading.Condition()
        self._active = 0
        self.ready = threading.Event()
        """Set when the state is known. Requests are processed from then on."""
        self.done = threading.Event()
        """Set when no more requests will come: the program has ended, or only waits to serve delete hooks."""
        self.released = threading.Event()
        """Set when no more hooks will be called."""

    def busy(self) -> _Busy:
        """Return a context that counts a request as active."""
        return _Busy(self._idle, self._count)

    def _count(self, change: int) -> None:
        self._active += change

    def wait_idle(self) -> None:
        """Wait until no request is active."""
        with self._idle:
            self._idle.wait_for(lambda: self._active == 0)

    def build_urn(self, request: Any) -> str:
        """Return the URN of the resource in a request, or that of the stack."""
        deployment = self.deployment
        name, type_ = getattr(request, "name", ""), getattr(request, "type", "")
        if not name or not type_:
            return deployment.stack_urn
        return make_urn(deployment.stack, deployment.project, request.parent, type_, name)

    def GetDeploymentInfo(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Return the deployment's settings and the supported features."""
        deployment = self.deployment
        features = [getattr(rpc.resource_messages, f"RESOURCE_MONITOR_FEATURE_{name}") for name in _FEATURES]
        return rpc.resource_messages.DeploymentInfo(
            project=deployment.project,
            stack=deployment.stack,
            organization=deployment.organization,
            config=deployment.config,
            configSecretKeys=deployment.secret_keys,
            dryRun=deployment.dry_run,
            parallel=deployment.parallel,
            supportedFeatures=features,
        )

    @_respond
    def RegisterResource(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Bring a resource to its desired state."""
        desired = read_desired_state(request, self.deployment.root)
        parent_desired = self._planner.find_desired_state(desired.parent)
        if parent_desired is not None:
            desired.inherit(parent_desired)
        transforms = list(request.transforms)
        self._transforms.apply(desired, transforms, self._ancestors(desired.parent))
        desired.inputs = add_hashes(desired.inputs, self.deployment.program)
        urn = make_urn(self.deployment.stack, self.deployment.project, desired.parent, desired.type, desired.name)
        self._parents[urn] = desired.parent
        self._transforms.remember(urn, transforms)
        state, step = self._planner.register(desired)
        return rpc.resource_messages.RegisterResourceResponse(
            urn=state.urn,
            id=state.id,
            object=_response_outputs(state.outputs, request),
            stable=step.op == "same",
            stables=step.diff.stable_keys if step.op == "update" else [],
            unknown=step.is_skipped,
        )

    def _ancestors(self, parent: str) -> list[str]:
        ancestors: list[str] = []
        while parent:
            ancestors.append(parent)
            parent = self._parents.get(parent, "")
        return ancestors

    @_respond
    def RegisterResourceOutputs(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Record the outputs of a component or the stack."""
        outputs = add_hashes(from_struct(request.outputs), self.deployment.program)
        self._planner.outputs(request.urn, outputs)
        return rpc.EMPTY

    @_respond
    def ReadResource(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Read an object that the stack does not manage."""
        deployment = self.deployment
        dependencies: set[str] = set(request.dependencies)
        new = ResourceState(
            urn=self.build_urn(request),
            type=request.type,
            custom=True,
            id=request.id,
            inputs=add_hashes(from_struct(request.properties, dependencies.add), deployment.program),
            parent=request.parent,
            provider=request.provider,
            dependencies=sorted(dependencies),
            additional_secret_outputs=list(request.additionalSecretOutputs),
            external=True,
            source_position=source_position(request.sourcePosition, deployment.root),
        )
        state = self._planner.read(new, request.version, request.pluginDownloadURL)
        return rpc.resource_messages.ReadResourceResponse(
            urn=state.urn, properties=_response_outputs(state.outputs, request)
        )

    @_respond
    def Invoke(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Call a function of a provider."""
        if request.packageRef:
            raise EngineError(
                f"the function {request.tok} comes from a parameterized package, which the embedded engine does not "
                "support: use the Pulumi CLI"
            )
        self.deployment.check_running()
        arguments = from_struct(request.args)
        options = rpc.resource_messages.TransformInvokeOptions(
            provider=request.provider, plugin_download_url=request.pluginDownloadURL, version=request.version
        )
        arguments, options = self._transforms.apply_to_invoke(request.tok, arguments, options)
        reference = options.provider or self._planner.defaults.reference(
            request.tok, options.version, options.plugin_download_url
        )
        arguments = add_hashes(arguments, self.deployment.program)
        if has_unknown(dict(arguments)):
            return rpc.resource_messages.ResourceInvokeResponse(unknown=True)
        result_value, failures = self.deployment.registry.get(reference).invoke(
            request.tok, arguments, preview=self.deployment.dry_run
        )
        response = rpc.resource_messages.ResourceInvokeResponse(
            failures=[
                rpc.provider_messages.CheckFailure(property=failure.property, reason=failure.reason)
                for failure in failures
            ]
        )
        if result_value is None:
            response.unknown = True
        else:
            result = result_value if request.acceptResources else flatten_references(result_value)
            getattr(response, "return").CopyFrom(to_struct(result))
        return response

    @_respond
    def Call(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Refuse a method of a remote component."""
        raise EngineError(
            f"the method {request.tok} of a remote component is not supported: use the Pulumi CLI for this program"
        )

    def RegisterStackTransform(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Register a transform of all resources."""
        self._transforms.add_for_stack(request)
        return rpc.EMPTY

    def RegisterStackInvokeTransform(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Register a transform of function calls."""
        self._transforms.add_for_invokes(request)
        return rpc.EMPTY

    def RegisterResourceHook(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        """Register a hook."""
        return self._register(self.deployment.hooks.add, request, context)

    def RegisterErrorHook(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        """Register an error hook."""
        return self._register(self.deployment.hooks.add_for_errors, request, context)

    @staticmethod
    def _register(add: Callable[[Any], None], request: Any, context: Any) -> Any:
        try:
            add(request)
        except HookError as error:
            rpc.abort_invalid(context, str(error))
        return rpc.EMPTY

    def SignalAndWaitForShutdown(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the protocol's name
        """Signal that the program is done, and wait until its hooks are no longer needed."""
        if self.deployment.hooks.registered:
            self.done.set()
            self.released.wait()
        return rpc.EMPTY


class _Busy:
    """Counts a request as active."""

    def __init__(self, idle: threading.Condition, count: Callable[[int], None]) -> None:
        self._idle = idle
        self._count = count

    def __enter__(self) -> None:
        with self._idle:
            self._count(1)

    def __exit__(self, *_: object) -> None:
        with self._idle:
            self._count(-1)
            self._idle.notify_all()


def _response_outputs(outputs: Properties, request: Any) -> Any:
    if not request.acceptSecrets:
        outputs = plaintext_properties(outputs)
    if not request.acceptResources:
        outputs = flatten_references(outputs)
    return to_struct(outputs)
