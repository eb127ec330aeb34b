"""Read the JSON of a checkpoint or exported deployment as a snapshot."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, cast

from lakewright_engine.model.errors import DamagedStateError, StateError, UnsupportedStateError
from lakewright_engine.model.resources import (
    Asset,
    PendingOperation,
    ResourceReference,
    ResourceState,
    SealedSecret,
    SecretValue,
    StackSnapshot,
    Unknown,
    Value,
)
from lakewright_engine.model.signatures import ARCHIVE, ASSET, FLOAT, RESOURCE, SECRET, SIGNATURE, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

Json = Any
Place = tuple[str, ...]
"""Path of a value: URN, whether the resource is to be deleted, `inputs` or `outputs`, then keys and positions."""

FIELDS = {
    "urn": "urn",
    "custom": "custom",
    "delete": "delete",
    "id": "id",
    "type": "type",
    "inputs": "inputs",
    "outputs": "outputs",
    "parent": "parent",
    "protect": "protect",
    "taint": "taint",
    "external": "external",
    "dependencies": "dependencies",
    "initErrors": "init_errors",
    "provider": "provider",
    "propertyDependencies": "property_dependencies",
    "pendingReplacement": "pending_replacement",
    "additionalSecretOutputs": "additional_secret_outputs",
    "aliases": "aliases",
    "customTimeouts": "custom_timeouts",
    "importID": "import_id",
    "retainOnDelete": "retain_on_delete",
    "deletedWith": "deleted_with",
    "replaceWith": "replace_with",
    "created": "created",
    "modified": "modified",
    "sourcePosition": "source_position",
    "stackTrace": "stack_trace",
    "ignoreChanges": "ignore_changes",
    "hideDiff": "hide_diff",
    "replaceOnChanges": "replace_on_changes",
    "replacementTrigger": "replacement_trigger",
    "resourceHooks": "hooks",
}
"""JSON key -> field of ResourceState, in the order of the CLI."""

_REDACTED = {SIGNATURE: SECRET, "ciphertext": "[secret]"}
"""The value that older versions of this engine wrote in place of a secret replacement trigger."""

FEATURES = {
    "refreshBeforeUpdate": "refreshBeforeUpdate",
    "viewOf": "views",
    "resourceHooks": "hooks",
    "taint": "taint",
    "replaceWith": "replaceWith",
    "extensionRef": "extensionParameterization",
    "snippetID": "snippets-prototype",
}
"""JSON key of a resource -> the feature that a reader of the checkpoint must support. Its version is then 4."""


def decode_sealed(stack: str, exported: Json, decrypt: Callable[[str], str]) -> StackSnapshot:
    """Return the snapshot of an exported deployment, with secrets that are decrypted at their first use.

    Args:
        stack: The stack's name, for messages.
        exported: The deployment as `pulumi stack export` writes it.
        decrypt: Returns the plaintext of a ciphertext.

    Raises:
        StateError: The value is not a deployment.
        UnsupportedStateError: The deployment needs a feature that this engine does not support.
    """
    body = read_deployment(
        stack, exported.get("deployment"), exported.get("version", 0), exported.get("features") or []
    )
    return read_snapshot(CheckpointReader(stack, lambda ciphertext, _place: decrypt(ciphertext), SealedSecret), body)


def read_deployment(stack: str, deployment: Json, deployment_version: int, features: list[str]) -> dict[str, Json]:
    """Return a deployment that this engine can read. Raise StateError or UnsupportedStateError."""
    check_version(stack, deployment_version, features)
    if not isinstance(deployment, dict):
        raise StateError(f"the state of stack '{stack}' has no deployment: expected an object")
    return cast("dict[str, Json]", deployment)


class CheckpointReader:
    """Reads the resources of a deployment."""

    def __init__(
        self, stack: str, decrypt: Callable[[str, Place], str], secret: Callable[[Callable[[], Value]], SecretValue]
    ) -> None:
        """Read resources of a stack.

        Args:
            stack: The stack's name, for messages.
            decrypt: Returns the plaintext of the ciphertext at a place.
            secret: Makes a secret from the function that decrypts it.
        """
        self.stack = stack
        self._decrypt = decrypt
        self._secret = secret

    def resource(self, body: dict[str, Json]) -> ResourceState:
        """Return one resource."""
        value_path = (body["urn"], str(body.get("delete", False)))
        fields: dict[str, Any] = {field: body[key] for key, field in FIELDS.items() if body.get(key) is not None}
        for part in ("inputs", "outputs"):
            if part in fields:
                fields[part] = {key: self._value(item, (*value_path, part, key)) for key, item in fields[part].items()}
        if "property_dependencies" in fields:  # earlier versions of the CLI wrote null for no dependencies
            fields["property_dependencies"] = {key: urns or [] for key, urns in fields["property_dependencies"].items()}
        trigger = body.get("replacementTrigger")
        if trigger == _REDACTED:
            del fields["replacement_trigger"]
        elif trigger is not None:
            fields["replacement_trigger"] = self._value(trigger, (*value_path, "replacementTrigger"))
        return ResourceState(**fields, extra={key: item for key, item in body.items() if key not in FIELDS})

    def _value(self, value: Json, value_path: Place) -> Value:
        if isinstance(value, list):
            items = cast("list[Json]", value)
            return [self._value(item, (*value_path, str(index))) for index, item in enumerate(items)]
        if isinstance(value, dict):
            members = cast("dict[str, Json]", value)
            if SIGNATURE in members:
                return self._read_signed(members, value_path)
            return {key: self._value(item, (*value_path, key)) for key, item in members.items()}
        return Unknown() if value == UNKNOWN else value

    def _read_signed(self, value: dict[str, Json], value_path: Place) -> Value:
        signature = value[SIGNATURE]
        if signature == SECRET:
            return self._secret(lambda: self._read_secret(value, value_path))
        if signature in (ASSET, ARCHIVE):
            return Asset(value)
        if signature == RESOURCE:
            return ResourceReference(value["urn"], value.get("id"), value.get("packageVersion", ""))
        if signature == FLOAT:
            return struct.unpack(">d", int(value["value"], 16).to_bytes(8, "big"))[0]
        message = (
            f"the state of stack '{self.stack}' holds a value of a type that this engine does not know ({signature})"
        )
        raise UnsupportedStateError(message)

    def _read_secret(self, value: dict[str, Json], value_path: Place) -> Value:
        # The CLI encrypts no secret inside of a secret: its `ciphertext` is plain JSON.
        inside = CheckpointReader(self.stack, lambda ciphertext, _place: ciphertext, self._secret)
        return inside._value(json.loads(self._plaintext(value, value_path)), value_path)

    def _plaintext(self, value: dict[str, Json], value_path: Place) -> str:
        return value["plaintext"] if "ciphertext" not in value else self._decrypt(value["ciphertext"], value_path)


def read_snapshot(reader: CheckpointReader, body: dict[str, Json]) -> StackSnapshot:
    """Return the snapshot of a deployment. Raise DamagedStateError if it is damaged."""
    try:
        return StackSnapshot(
            resources=[reader.resource(item) for item in _list(body.get("resources"))],
            pending_operations=[
                PendingOperation(reader.resource(item["resource"]), item["type"])
                for item in _list(body.get("pending_operations"))
            ],
            metadata=body.get("metadata") or {},
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        message = f"the state of stack '{reader.stack}' is damaged: {type(error).__name__}: {error}"
        raise DamagedStateError(message) from error


def _list(value: Json) -> list[dict[str, Json]]:
    return value or []


def check_version(stack: str, deployment_version: int, features: list[str]) -> None:
    """Check that this engine can read a deployment. Raise UnsupportedStateError."""
    if deployment_version not in (3, 4):
        message = f"the state of stack '{stack}' has version {deployment_version}; this engine reads versions 3 and 4"
        raise UnsupportedStateError(message)
    missing = sorted(set(features) - set(FEATURES.values()))
    if missing:
        message = f"the state of stack '{stack}' needs {', '.join(missing)}, which this engine does not know"
        raise UnsupportedStateError(message)
