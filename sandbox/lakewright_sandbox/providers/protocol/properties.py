"""Pulumi properties on the wire: convert protobuf structs to plain values and back, with secrets and unknowns.

A secret or an asset is an object with a signature key; an unknown value of a preview is one fixed string. Plain values
keep these forms; `reveal` unwraps secrets.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format, struct_pb2
from pulumi.runtime import rpc

from lakewright_sandbox.typed.json_values import is_array, is_object

Properties = dict[str, Any]

UNKNOWN: str = rpc.UNKNOWN


def from_struct(struct: struct_pb2.Struct) -> Properties:
    """Return the plain form of a struct, with integers that the wire made doubles as ints again."""
    return _with_ints(json_format.MessageToDict(struct))


def _with_ints(value: Any) -> Any:
    if is_object(value):
        return {key: _with_ints(item) for key, item in value.items()}
    if is_array(value):
        return [_with_ints(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def to_struct(properties: Properties) -> struct_pb2.Struct:
    """Return the wire form of plain properties."""
    return json_format.ParseDict(properties, struct_pb2.Struct())


def reveal(value: Any) -> Any:
    """Return a value with secrets unwrapped at every depth."""
    if rpc.is_rpc_secret(value):
        return reveal(rpc.unwrap_rpc_secret(value))
    if is_object(value):
        return {key: reveal(item) for key, item in value.items()}
    if is_array(value):
        return [reveal(item) for item in value]
    return value


def contains_secret(value: Any) -> bool:
    """Return whether a value contains a secret."""
    if rpc.is_rpc_secret(value):
        return True
    if is_object(value):
        return any(contains_secret(item) for item in value.values())
    return is_array(value) and any(contains_secret(item) for item in value)


def contains_unknown(value: Any) -> bool:
    """Return whether a value contains an unknown."""
    if is_object(value):
        return any(contains_unknown(item) for item in value.values())
    if is_array(value):
        return any(contains_unknown(item) for item in value)
    return value == UNKNOWN


def mark_secrets(outputs: Properties, inputs: Properties) -> Properties:
    """Return outputs marked secret like the inputs of the same name: by key within objects, otherwise as a whole."""
    marked: Properties = {}
    for key, value in outputs.items():
        input_value = inputs.get(key)
        if is_object(input_value) and is_object(value) and not rpc.is_rpc_secret(input_value):
            marked[key] = mark_secrets(value, input_value)
        else:
            marked[key] = rpc.wrap_rpc_secret(value) if contains_secret(input_value) else value
    return marked


def drop_internal(value: Any) -> Any:
    """Return a value without the `__` keys that the real bridge keeps in states, at every depth."""
    if is_object(value):
        return {key: drop_internal(item) for key, item in value.items() if not key.startswith("__")}
    if is_array(value):
        return [drop_internal(item) for item in value]
    return value
