"""Provider resources: the default provider of each package, registered at its first use, and explicit providers."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable

from lakewright_engine.model.errors import ProgramError
from lakewright_engine.model.properties import is_equal
from lakewright_engine.model.resources import Properties, ResourceState, SecretValue
from lakewright_engine.model.signatures import UNKNOWN
from lakewright_engine.model.step import DeploymentStep, Diff
from lakewright_engine.model.urns import find_package, provider_type
from lakewright_engine.planning.early_deletions import EarlyDeletions
from lakewright_engine.planning.replacement import check_replaceable
from lakewright_engine.providers.provider import InputFailure, public_config
from lakewright_engine.providers.registry import BUILTIN, DYNAMIC
from lakewright_engine.registration.desired_state import DesiredState
from lakewright_engine.steps.deployment import Deployment

Register = Callable[[DesiredState], tuple[ResourceState, DeploymentStep]]
Refuse = Callable[[ResourceState, list[InputFailure], DesiredState], None]


class DefaultProviders:
    """The default providers of a run, by package, version and plugin URL."""

    def __init__(self, deployment: Deployment, register: Register) -> None:
        """Start without default providers; `register` registers them."""
        self._deployment = deployment
        self._register = register
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._references: dict[str, str] = {}

    def reference(self, type_or_token: str, version: str, url: str) -> str:
        """Return the reference `URN::ID` of the default provider for a type or function."""
        package = find_package(type_or_token)
        self._refuse_disabled(package)
        name = "default"
        if version:
            name += "_" + version.replace(".", "_").replace("+", "_").replace("-", "_")
        if url:
            name += "_" + url.replace("/", "_").replace(":", "_")
        key = f"{package}::{name}"
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._references:
                desired = DesiredState(
                    type=provider_type(package),
                    name=name,
                    custom=True,
                    inputs=self._config(package),
                    version=version,
                    plugin_url=url,
                )
                state, _ = self._register(desired)
                self._references[key] = f"{state.urn}::{state.id or UNKNOWN}"
            return self._references[key]

    def _refuse_disabled(self, package: str) -> None:
        setting = self._deployment.config.get("pulumi:disable-default-providers", "")
        disabled: list[str] = json.loads(setting) if setting else []
        if package != BUILTIN and ("*" in disabled or package in disabled):
            raise ProgramError(
                f"the default provider for {package!r} is disabled (pulumi:disable-default-providers): "
                "give the resource or function an explicit provider"
            )

    def _config(self, package: str) -> Properties:
        """Return the stack's configuration of a package.

        A dynamic provider gets the whole configuration with full keys.
        """
        config: Properties = {}
        for key, text in sorted(self._deployment.config.items()):
            namespace, _, name = key.partition(":")
            value = SecretValue(text) if key in self._deployment.secret_keys else text
            if package == DYNAMIC:
                config[key] = value
            elif namespace == package:
                config[name] = value
        return config


def register_provider(
    deployment: Deployment,
    desired: DesiredState,
    old: ResourceState | None,
    new: ResourceState,
    refuse: Refuse,
    *,
    early: EarlyDeletions,
) -> DeploymentStep:
    """Check, configure and record a provider. The old state of a replaced provider is deleted later."""
    registry = deployment.registry
    new.inputs = _add_plugin_source(new.inputs, desired)
    config = public_config(new.inputs)
    old_config = _old_config(old, config) if old is not None else {}
    # A changed configuration starts another plugin: that of the state may still have to delete its objects.
    known_id = old.id if old is not None and is_equal(old_config, config) else UNKNOWN
    provider = registry.load(f"{new.urn}::{known_id}", new.type, new.inputs)
    checked, failures = provider.check_config(new.urn, old_config, config)
    refuse(new, failures, desired)
    if "version" in config:
        checked.setdefault("version", config["version"])
    new.inputs = {**({"__internal": new.inputs["__internal"]} if "__internal" in new.inputs else {}), **checked}
    new.outputs = dict(checked)
    step = DeploymentStep("create", None, new)
    if old is not None:
        diff = provider.diff_config(new.urn, old_config, old.outputs, checked)
        changed = diff.changes == "some" or (diff.changes == "unknown" and not is_equal(old_config, checked))
        op = "same" if not changed else "create-replacement" if diff.replaces else "update"
        if old.taint or deployment.scope.replace.matches(new.urn):
            op, diff = "create-replacement", Diff("some", replace_keys=["id"])
        keys = early.decide(new.urn, old)
        if keys is not None:
            op, diff = "create-replacement", Diff("some", replace_keys=keys)
        elif op == "create-replacement" or old.pending_replacement:
            op = "create-replacement"
            check_replaceable(deployment, desired, old, new, diff)
            if desired.delete_before_replace or (desired.delete_before_replace is None and diff.delete_before_replace):
                deployment.observer.check_replacement(new)
                early.execute(old)
        step = DeploymentStep(op, old, new, diff, logical=op != "create-replacement")
    new.id = old.id if old is not None and step.op != "create-replacement" else _new_id(deployment)
    # A refresh has configured and used an unchanged provider.
    if step.op != "same" or not registry.is_configured(new.urn, new.id):
        registry.configure(new.urn, new.id, new.inputs, provider)
    if step.op == "same":
        deployment.same(step)
    elif step.op == "update":
        deployment.update(step)
    elif step.op == "create":
        deployment.create(step)
    else:
        _create_replacement(deployment, step)
    return step


def _add_plugin_source(inputs: Properties, desired: DesiredState) -> Properties:
    """Return a provider's inputs with the version and source of its plugin, in the fields that the CLI reads."""
    if not desired.version and not desired.plugin_url:
        return inputs
    declared_internal = inputs.get("__internal")
    internal: Properties = dict(declared_internal) if isinstance(declared_internal, dict) else {}
    if desired.plugin_url:
        internal["pluginDownloadURL"] = desired.plugin_url
    result: Properties = {**inputs, "__internal": internal}
    if desired.version:
        result["version"] = desired.version
    return result


def _old_config(old: ResourceState, config: Properties) -> Properties:
    """Return the configuration in the state, without the plugin source that older engines stored in it."""
    kept_config = public_config(old.inputs)
    if "__internal" in old.inputs and "pluginDownloadURL" not in config:
        kept_config.pop("pluginDownloadURL", None)
    return kept_config


def _create_replacement(deployment: Deployment, step: DeploymentStep) -> None:
    """Record the new provider, after the `replace` step if the old provider was deleted first, else before it."""
    replacement = DeploymentStep("replace", step.old, step.new, step.diff)
    is_deleted_first = step.old is not None and step.old.pending_replacement
    if is_deleted_first:
        deployment.run(replacement, lambda: None)
    deployment.create(step)
    if not is_deleted_first:
        deployment.run(replacement, lambda: None)


def _new_id(deployment: Deployment) -> str:
    return UNKNOWN if deployment.dry_run else str(uuid.uuid4())
