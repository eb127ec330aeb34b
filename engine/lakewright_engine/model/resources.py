"""The state of a stack: resources, pending operations, and property values that JSON has no type for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class SecretValue:
    """A value that is encrypted wherever it is stored and never displayed."""

    value: Value

    def __repr__(self) -> str:
        """Hide the value in logs and tracebacks."""
        return "[secret]"


class SealedSecret(SecretValue):
    """A secret of a state that is only read. It is decrypted when its value is first used."""

    def __init__(self, unseal: Callable[[], Value]) -> None:
        """Keep the function that decrypts the value. Its errors reach the first user of the value."""
        object.__setattr__(self, "_unseal", unseal)

    def __getattr__(self, name: str) -> Value:
        """Decrypt the value once."""
        if name != "value":
            raise AttributeError(name)
        unsealed: Value = object.__getattribute__(self, "_unseal")()
        object.__setattr__(self, "value", unsealed)
        return unsealed


@dataclass(frozen=True)
class Unknown:
    """A value that is not known during a preview."""


@dataclass(frozen=True)
class ResourceReference:
    """A property that is a resource. Providers that do not accept references get its id."""

    urn: str
    id: Value | None = None
    version: str = ""


@dataclass(frozen=True)
class Asset:
    """An asset or archive, kept in Pulumi's own wire form (signature key included)."""

    wire: dict[str, Any]


Scalar: TypeAlias = bool | int | float | str | None
Value: TypeAlias = "Scalar | list[Value] | dict[str, Value] | SecretValue | Unknown | ResourceReference | Asset"
Properties: TypeAlias = "dict[str, Value]"


@dataclass
class ResourceState:
    """One resource in a checkpoint. Fields come from Pulumi's `apitype.ResourceV3`, in snake case."""

    urn: str
    type: str
    custom: bool
    id: str = ""
    inputs: Properties = field(default_factory=dict[str, Value])
    outputs: Properties = field(default_factory=dict[str, Value])
    parent: str = ""
    provider: str = ""
    dependencies: list[str] = field(default_factory=list[str])
    property_dependencies: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    protect: bool = False
    taint: bool = False
    """Whether the next update replaces the resource (`pulumi state taint`)."""
    retain_on_delete: bool = False
    external: bool = False
    delete: bool = False
    pending_replacement: bool = False
    init_errors: list[str] = field(default_factory=list[str])
    additional_secret_outputs: list[str] = field(default_factory=list[str])
    aliases: list[str] = field(default_factory=list[str])
    custom_timeouts: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds for `create`, `update` and `delete`."""
    import_id: str = ""
    deleted_with: str = ""
    replace_with: list[str] = field(default_factory=list[str])
    ignore_changes: list[str] = field(default_factory=list[str])
    hide_diff: list[str] = field(default_factory=list[str])
    """Property paths whose differences are not displayed."""
    replace_on_changes: list[str] = field(default_factory=list[str])
    replacement_trigger: Value = None
    """A change of this value replaces the resource."""
    created: str = ""
    """RFC 3339, UTC."""
    modified: str = ""
    source_position: str = ""
    hooks: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Names of hooks by kind, such as `BeforeCreate` and `AfterCreate`."""
    stack_trace: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    """Fields of a newer CLI that the engine does not know. They are written back unchanged."""


@dataclass
class PendingOperation:
    """An operation in progress: `creating`, `updating`, `deleting`, `reading` or `importing`."""

    resource: ResourceState
    type: str


@dataclass
class StackSnapshot:
    """The state of a stack: resources in dependency order, and operations in progress."""

    resources: list[ResourceState] = field(default_factory=list[ResourceState])
    pending_operations: list[PendingOperation] = field(default_factory=list[PendingOperation])
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
