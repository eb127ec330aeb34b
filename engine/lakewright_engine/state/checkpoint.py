"""Convert a snapshot from and to the JSON of a checkpoint or exported deployment, exactly as the Pulumi CLI does.

A codec is used for one stack in one process. It caches the ciphertext of every secret and the text of every resource,
so that unchanged resources are written again quickly and without a change.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
import struct
from dataclasses import fields, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

from lakewright_engine.model.errors import StateError
from lakewright_engine.model.resources import (
    Asset,
    Properties,
    ResourceReference,
    ResourceState,
    SecretValue,
    StackSnapshot,
    Unknown,
    Value,
)
from lakewright_engine.model.signatures import FLOAT, RESOURCE, SECRET, SIGNATURE, UNKNOWN
from lakewright_engine.state.checkpoint_reader import FEATURES, FIELDS, CheckpointReader, read_deployment, read_snapshot
from lakewright_engine.state.secrets import PassphraseManager, refuse_other_providers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json = Any

ALWAYS_WRITTEN = ("urn", "custom", "type")

PRESERVED_PARTS = ("snippets", "extensions")
"""Parts of a deployment that the engine does not know and writes back unchanged."""


class Codec:
    """Reads and writes the deployments of a stack."""

    def __init__(self, stack: str) -> None:
        """Start with empty caches."""
        self._stack = stack
        self._ciphertexts: dict[tuple[str, ...], tuple[str, str, str]] = {}
        """Place of a secret -> salt, plaintext and ciphertext."""
        self._written: dict[int, _WrittenResource] = {}
        self._kept: dict[str, Json] = {}

    def decode(self, deployment: Json, deployment_version: int, features: list[str]) -> StackSnapshot:
        """Return the snapshot of a deployment.

        Raises:
            StateError: The value is not a deployment.
            UnsupportedStateError: The deployment needs a feature that this engine does not support.
        """
        body = read_deployment(self._stack, deployment, deployment_version, features)
        manager = find_secrets_manager(body, self._stack)
        self._kept = {key: body[key] for key in PRESERVED_PARTS if body.get(key)}

        def decrypt(ciphertext: str, value_path: tuple[str, ...]) -> str:
            if manager is None:
                raise StateError(f"the state of stack '{self._stack}' holds secrets, but names no secrets provider")
            plaintext = manager.decrypt(ciphertext)
            self._ciphertexts[value_path] = (manager.salt, plaintext, ciphertext)
            return plaintext

        return read_snapshot(CheckpointReader(self._stack, decrypt, _open), body)

    def encode(self, snapshot: StackSnapshot, manager: PassphraseManager) -> tuple[str, int, list[str]]:
        """Return the deployment's JSON text, its schema version and its features."""
        writer = _Writer(manager, self._ciphertexts)
        written: dict[int, _WrittenResource] = {}

        def find_written(resource: ResourceState) -> _WrittenResource:
            written_resource = written.get(id(resource)) or self._written.get(id(resource))
            if written_resource is None or not written_resource.is_current(resource, manager.salt):
                written_resource = _WrittenResource(resource, manager.salt, writer)
            written[id(resource)] = written_resource
            return written_resource

        texts = [find_written(resource).text for resource in snapshot.resources]
        features = {"snippets-prototype"} if self._kept.get("snippets") else set[str]()
        features |= {feature for resource in written.values() for feature in resource.features}
        pending = [
            f'{{"resource":{find_written(operation.resource).text},"type":{_dump(operation.type)}}}'
            for operation in snapshot.pending_operations
        ]
        self._written = written
        parts = {"manifest": _dump(_manifest()), "secrets_providers": _dump(_providers(manager))}
        if texts:
            parts["resources"] = f"[{','.join(texts)}]"
        if pending:
            parts["pending_operations"] = f"[{','.join(pending)}]"
        parts["metadata"] = _dump(snapshot.metadata)
        parts |= {key: _dump(value) for key, value in self._kept.items()}
        text = "{" + ",".join(f'"{key}":{part}' for key, part in parts.items()) + "}"
        return text, 4 if features else 3, sorted(features)


def _open(unseal: Callable[[], Value]) -> SecretValue:
    return SecretValue(unseal())


def find_secrets_manager(deployment: Json, stack: str) -> PassphraseManager | None:
    """Return the secrets manager that a deployment names, if any.

    Raise UnsupportedStateError if it is not a passphrase.
    """
    provider: dict[str, Json] = deployment.get("secrets_providers") or {}
    state: dict[str, Json] = provider.get("state") or {}
    if not provider.get("type"):
        return None
    refuse_other_providers(provider["type"], stack)
    return PassphraseManager.from_salt(state.get("salt", ""), stack)


def encode_resource(resource: ResourceState, manager: PassphraseManager) -> dict[str, Json]:
    """Return a resource as JSON, with encrypted secrets."""
    return _Writer(manager, {}).resource(resource)


def decode_resource(body: dict[str, Json], stack: str, manager: PassphraseManager) -> ResourceState:
    """Return a resource of a stack from its JSON."""
    return CheckpointReader(stack, lambda ciphertext, _place: manager.decrypt(ciphertext), _open).resource(body)


class _WrittenResource:
    """The text of a resource, and a copy of the resource when it was written."""

    def __init__(self, resource: ResourceState, salt: str, writer: _Writer) -> None:
        self._values = tuple(vars(resource).values())
        self._copy = replace(
            resource, **{field.name: _deep_copy(getattr(resource, field.name)) for field in fields(resource)}
        )
        self._salt = salt
        body = writer.resource(self._copy)  # the copy: another thread may change the resource
        self.text = _dump(body)
        self.features = {feature for key, feature in FEATURES.items() if body.get(key)}

    def is_current(self, resource: ResourceState, salt: str) -> bool:
        """Return whether the text is current: no field was assigned or changed in place since."""
        return (
            salt == self._salt
            and all(map(operator.is_, vars(resource).values(), self._values))
            and vars(resource) == vars(self._copy)
        )


class _Writer:
    def __init__(self, manager: PassphraseManager, ciphertexts: dict[tuple[str, ...], tuple[str, str, str]]) -> None:
        self._manager = manager
        self._ciphertexts = ciphertexts

    def resource(self, resource: ResourceState) -> dict[str, Json]:
        value_path = (resource.urn, str(resource.delete))
        return dict(self._members(resource, value_path))

    def _members(self, resource: ResourceState, value_path: tuple[str, ...]) -> Iterator[tuple[str, Json]]:
        for key, field in FIELDS.items():
            value: Any = getattr(resource, field)
            if key == "replacementTrigger":
                if resource.replacement_trigger is not None:
                    yield key, self._value(resource.replacement_trigger, (*value_path, key))
                continue
            if not value and key not in ALWAYS_WRITTEN:
                continue
            if key in ("inputs", "outputs"):
                yield key, self._properties(value, (*value_path, key))
            elif isinstance(value, dict):
                members = cast("dict[str, Json]", value)
                yield key, {name: _number(members[name]) for name in sorted(members)}
            else:
                yield key, value
        yield from resource.extra.items()

    def _properties(self, properties: Properties, value_path: tuple[str, ...]) -> dict[str, Json]:
        return {key: self._value(properties[key], (*value_path, key)) for key in sorted(properties)}

    def _value(self, value: Value, value_path: tuple[str, ...]) -> Json:
        if isinstance(value, dict):
            return self._properties(value, value_path)
        if isinstance(value, list):
            return [self._value(item, (*value_path, str(index))) for index, item in enumerate(value)]
        if isinstance(value, SecretValue):
            return {
                SIGNATURE: SECRET,
                "ciphertext": self._ciphertext(_dump(_to_plaintext_json(value.value)), value_path),
            }
        return _to_plaintext_json(value)

    def _ciphertext(self, plaintext: str, value_path: tuple[str, ...]) -> str:
        salt, find_written, ciphertext = self._ciphertexts.get(value_path, ("", "", ""))
        if (salt, find_written) != (self._manager.salt, plaintext):
            ciphertext = self._manager.encrypt(plaintext)
            self._ciphertexts[value_path] = (self._manager.salt, plaintext, ciphertext)
        return ciphertext


def _to_plaintext_json(value: Value) -> Json:  # noqa: PLR0911 - one return for each kind of value
    """Return a value without encryption: a value that is not secret, or that is inside a secret."""
    if isinstance(value, dict):
        return {key: _to_plaintext_json(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_to_plaintext_json(item) for item in value]
    if isinstance(value, SecretValue):
        return {SIGNATURE: SECRET, "plaintext": _dump(_to_plaintext_json(value.value))}
    if isinstance(value, Unknown):
        return UNKNOWN
    if isinstance(value, Asset):
        return value.wire
    if isinstance(value, ResourceReference):
        reference = {SIGNATURE: RESOURCE, "packageVersion": value.version, "urn": value.urn}
        return reference if value.id is None else reference | {"id": _to_plaintext_json(value.id)}
    return _number(value)


def _number(value: Json) -> Json:
    """Return integral floats as integers, and numbers that JSON cannot represent by their bits."""
    if not isinstance(value, float):
        return value
    if value.is_integer() and abs(value) < 1e21:
        return int(value)
    if not math.isfinite(value):
        return {SIGNATURE: FLOAT, "value": struct.pack(">d", value).hex()}
    return value


def _deep_copy(value: Any) -> Any:
    """Return a deep copy of dicts and lists."""
    if isinstance(value, dict):
        return {key: _deep_copy(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_deep_copy(item) for item in cast("list[Any]", value)]
    return value


@cache
def _sdk() -> str:
    return version("pulumi")


def _manifest() -> dict[str, Json]:
    engine = f"v{_sdk()}"
    return {
        "time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}".rstrip("0").rstrip(".") + "Z",
        "magic": hashlib.sha256(engine.encode()).hexdigest(),
        "version": engine,
    }


def _providers(manager: PassphraseManager) -> dict[str, Json]:
    return {"type": manager.kind, "state": {"salt": manager.salt}}


def _dump(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
