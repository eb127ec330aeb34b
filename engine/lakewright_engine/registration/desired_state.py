"""The desired state of a resource: a registration request as values of the engine."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from lakewright_engine.model.errors import ProgramError, UnsupportedFeatureError
from lakewright_engine.model.properties import from_struct, from_wire
from lakewright_engine.model.resources import Properties, ResourceState, Value
from lakewright_engine.registration.hooks import bindings_from_message

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class AliasSpec:
    """Another name that a resource may have in the state: a `urn`, or the parts that differ."""

    urn: str = ""
    name: str = ""
    type: str = ""
    stack: str = ""
    project: str = ""
    parent: str = ""
    no_parent: bool = False


@dataclass
class DesiredState:
    """The state that the program wants for a resource. Options that are None come from the parent."""

    type: str
    name: str
    custom: bool
    inputs: Properties
    parent: str = ""
    provider: str = ""
    version: str = ""
    plugin_url: str = ""
    protect: bool | None = None
    retain_on_delete: bool | None = None
    delete_before_replace: bool | None = None
    dependencies: list[str] = field(default_factory=list[str])
    property_dependencies: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    ignore_changes: list[str] = field(default_factory=list[str])
    replace_on_changes: list[str] = field(default_factory=list[str])
    additional_secret_outputs: list[str] = field(default_factory=list[str])
    aliases: list[AliasSpec] = field(default_factory=list[AliasSpec])
    import_id: str = ""
    custom_timeouts: dict[str, float] = field(default_factory=dict[str, float])
    deleted_with: str = ""
    replace_with: list[str] = field(default_factory=list[str])
    replacement_trigger: Value = None
    hide_diffs: list[str] = field(default_factory=list[str])
    providers: dict[str, str] = field(default_factory=dict[str, str])
    source_position: str = ""
    hooks: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def inherit(self, parent: DesiredState) -> None:
        """Inherit options of the parent."""
        if not self.deleted_with:
            self.deleted_with = parent.deleted_with
        if self.protect is None:
            self.protect = parent.protect
        if self.retain_on_delete is None:
            self.retain_on_delete = parent.retain_on_delete

    def to_state(self, urn: str, old: ResourceState | None) -> ResourceState:
        """Return the state of the resource, without id and outputs."""
        return ResourceState(
            urn=urn,
            type=self.type,
            custom=self.custom,
            inputs=self.inputs,
            parent=self.parent,
            provider=self.provider,
            dependencies=list(self.dependencies),
            property_dependencies=dict(self.property_dependencies),
            protect=bool(self.protect),
            retain_on_delete=bool(self.retain_on_delete),
            additional_secret_outputs=list(self.additional_secret_outputs),
            aliases=[old.urn] if old is not None and old.urn != urn else [],
            custom_timeouts=dict(self.custom_timeouts),
            import_id=self.import_id,
            deleted_with=self.deleted_with,
            replace_with=list(self.replace_with),
            ignore_changes=list(self.ignore_changes),
            created=old.created if old is not None else "",
            modified=old.modified if old is not None else "",
            source_position=self.source_position,
            hooks={kind: list(names) for kind, names in self.hooks.items()},
            hide_diff=list(self.hide_diffs),
            replace_on_changes=list(self.replace_on_changes),
            replacement_trigger=self.replacement_trigger,
        )


def read_desired_state(request: Any, root: Path) -> DesiredState:
    """Read a RegisterResourceRequest. Raise UnsupportedFeatureError for options that the engine does not support."""
    _refuse_unsupported(request)
    dependencies: set[str] = set(request.dependencies)
    inputs = from_struct(request.object, dependencies.add)
    return DesiredState(
        type=request.type,
        name=request.name,
        custom=request.custom,
        inputs=inputs,
        parent=request.parent,
        provider=request.provider,
        version=request.version,
        plugin_url=request.pluginDownloadURL,
        protect=request.protect if request.HasField("protect") else None,
        retain_on_delete=request.retainOnDelete if request.HasField("retainOnDelete") else None,
        delete_before_replace=request.deleteBeforeReplace if request.deleteBeforeReplaceDefined else None,
        dependencies=sorted(dependencies),
        property_dependencies={key: sorted(item.urns) for key, item in request.propertyDependencies.items()},
        ignore_changes=list(request.ignoreChanges),
        replace_on_changes=list(request.replaceOnChanges),
        additional_secret_outputs=list(request.additionalSecretOutputs),
        aliases=[*(AliasSpec(urn=urn) for urn in request.aliasURNs), *map(alias_from_message, request.aliases)],
        import_id=request.importId,
        custom_timeouts=timeouts_from_message(request.customTimeouts),
        deleted_with=request.deletedWith,
        replace_with=list(request.replace_with),
        replacement_trigger=(
            from_wire(request.replacement_trigger) if request.HasField("replacement_trigger") else None
        ),
        hide_diffs=list(request.hideDiffs),
        providers=dict(request.providers),
        source_position=source_position(request.sourcePosition, root),
        hooks=bindings_from_message(request.hooks),
    )


def _refuse_unsupported(request: Any) -> None:
    name = f"{request.type} {request.name!r}"
    if request.remote:
        raise UnsupportedFeatureError(
            f"{name} is a remote component, which the embedded engine does not construct: use the Pulumi CLI"
        )
    if request.packageRef:
        raise UnsupportedFeatureError(
            f"{name} comes from a parameterized package, which the embedded engine does not support: use the Pulumi CLI"
        )
    if request.envVarMappings:
        raise UnsupportedFeatureError(
            f"{name} sets env_var_mappings, which the embedded engine does not support: use the Pulumi CLI"
        )
    if request.state_migrations:
        raise UnsupportedFeatureError(
            f"{name} uses state migrations, which the embedded engine does not run: use the Pulumi CLI"
        )


def alias_from_message(message: Any) -> AliasSpec:
    """Read an alias in a request."""
    if message.WhichOneof("alias") == "urn":
        return AliasSpec(urn=message.urn)
    spec = message.spec
    no_parent = spec.WhichOneof("parent") == "noParent" and spec.noParent
    return AliasSpec(
        name=spec.name,
        type=spec.type,
        stack=spec.stack,
        project=spec.project,
        parent=spec.parentUrn,
        no_parent=no_parent,
    )


def timeouts_from_message(message: Any) -> dict[str, float]:
    """Read the custom timeouts in a request, in seconds."""
    texts = {verb: getattr(message, verb) for verb in ("create", "update", "delete", "read")}
    return {verb: _seconds(text) for verb, text in texts.items() if text}


def _seconds(text: str) -> float:
    """Return the seconds of a duration in Go's syntax, such as `1h30m`."""
    parts = re.findall(r"([0-9.]+)(ns|us|µs|ms|s|m|h)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ProgramError(f"custom timeout {text!r} is not a duration: expected a value such as '5m' or '1h30m'")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def source_position(message: Any, root: Path) -> str:
    """Return `project:///FILE#LINE` for a position inside the project; empty for others."""
    parts = urlsplit(str(message.uri))
    if parts.scheme != "file":
        return ""
    path = PurePosixPath(unquote(parts.path))
    if not path.is_relative_to(root.as_posix()):
        return ""
    line = ",".join(str(number) for number in (message.line, message.column) if number)
    return f"project:///{path.relative_to(root.as_posix())}#{line}"
