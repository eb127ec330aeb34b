"""Property values: convert them from and to Pulumi's wire form (Struct, signature keys), compare and mark them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from google.protobuf.struct_pb2 import NULL_VALUE, ListValue, Struct
from google.protobuf.struct_pb2 import Value as WireValue

from lakewright_engine.model.resources import Asset, Properties, ResourceReference, SecretValue, Unknown, Value
from lakewright_engine.model.signatures import ARCHIVE, ASSET, OUTPUT, RESOURCE, SECRET, SIGNATURE, UNKNOWN

if TYPE_CHECKING:
    from typing import Any

DependencySink = Callable[[str], None]

_SCALARS = frozenset({str, int, float, bool, type(None)})
"""Most values have one of these types. They are checked first, for speed."""


def from_struct(struct: Struct, dependencies: DependencySink | None = None) -> Properties:
    """Read a Struct. `dependencies` is called with the URNs that output values depend on."""
    return {key: from_wire(value, dependencies) for key, value in struct.fields.items()}


def from_wire(value: WireValue, dependencies: DependencySink | None = None) -> Value:  # noqa: PLR0911 - one return for each kind
    """Read one value, as `from_struct` does."""
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        text = value.string_value
        return Unknown() if text == UNKNOWN else text
    if kind == "struct_value":
        fields = value.struct_value.fields
        if SIGNATURE in fields:
            return _from_signed({key: from_wire(item, dependencies) for key, item in fields.items()}, dependencies)
        return {key: from_wire(item, dependencies) for key, item in fields.items()}
    if kind == "list_value":
        return [from_wire(item, dependencies) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() and abs(number) < 2**63 else number
    if kind == "bool_value":
        return value.bool_value
    return None


def _from_signed(fields: dict[str, Value], dependencies: DependencySink | None) -> Value:
    signature = fields[SIGNATURE]
    if signature == SECRET:
        return make_secret(fields.get("value"))
    if signature in (ASSET, ARCHIVE):
        return Asset(cast("dict[str, Any]", _wire_form(fields)))
    if signature == RESOURCE:
        return ResourceReference(str(fields.get("urn", "")), fields.get("id"), str(fields.get("packageVersion", "")))
    if signature == OUTPUT:
        if dependencies is not None:
            for urn in cast("list[str]", fields.get("dependencies") or []):
                dependencies(urn)
        value = fields.get("value") if "value" in fields else Unknown()
        return make_secret(value) if fields.get("secret") else value
    raise ValueError(f"a property has the unknown signature {signature!r}")


def _wire_form(value: Value) -> Value:
    """Return the parts of an archive in wire form."""
    if isinstance(value, Asset):
        return value.wire
    return {key: _wire_form(item) for key, item in value.items()} if isinstance(value, dict) else value


def make_secret(value: Value) -> SecretValue:
    """Mark a value as secret. A secret inside a secret is one secret."""
    return value if isinstance(value, SecretValue) else SecretValue(value)


def to_struct(properties: Properties) -> Struct:
    """Return the properties as a Struct."""
    struct = Struct()
    for key, value in properties.items():
        _fill_wire(struct.fields[key], value)
    return struct


def to_wire(value: Value) -> WireValue:
    """Return one value in wire form."""
    wire = WireValue()
    _fill_wire(wire, value)
    return wire


def _fill_wire(wire: WireValue, value: Value) -> None:  # noqa: PLR0912 - one branch for each kind
    if isinstance(value, str):
        wire.string_value = value
    elif value is None:
        wire.null_value = NULL_VALUE
    elif isinstance(value, bool):
        wire.bool_value = value
    elif isinstance(value, int | float):
        wire.number_value = value
    elif isinstance(value, list):
        target = wire.list_value
        if not value:
            target.CopyFrom(ListValue())
        for item in value:
            _fill_wire(target.values.add(), item)
    elif isinstance(value, dict):
        fields = wire.struct_value
        if not value:
            fields.CopyFrom(Struct())
        for key, item in value.items():
            _fill_wire(fields.fields[key], item)
    elif isinstance(value, Unknown):
        wire.string_value = UNKNOWN
    elif isinstance(value, SecretValue):
        _fill_wire(wire, {SIGNATURE: SECRET, "value": value.value})
    elif isinstance(value, ResourceReference):
        reference: Properties = {SIGNATURE: RESOURCE, "urn": value.urn}
        if value.id is not None:
            reference["id"] = "" if isinstance(value.id, Unknown) else value.id
        if value.version:
            reference["packageVersion"] = value.version
        _fill_wire(wire, reference)
    else:
        _fill_wire(wire, cast("Value", value.wire))


def rewrite(value: Value, change: Callable[[Value], Value]) -> Value:
    """Return the value with `change` applied to every value in it, inner values first."""
    if type(value) in _SCALARS:
        return change(value)
    if isinstance(value, dict):
        return change({key: rewrite(item, change) for key, item in value.items()})
    if isinstance(value, list):
        return change([rewrite(item, change) for item in value])
    if isinstance(value, SecretValue):
        return change(make_secret(rewrite(value.value, change)))
    return change(value)


def plaintext(value: Value) -> Value:
    """Return the value without secret marks, for comparisons and for providers that do not accept secrets."""
    if not has_secret(value):
        return value
    return rewrite(value, lambda item: item.value if isinstance(item, SecretValue) else item)


def plaintext_properties(properties: Properties) -> Properties:
    """Return the properties without secret marks."""
    return {key: plaintext(value) for key, value in properties.items()}


def flatten_references(properties: Properties) -> Properties:
    """Replace resource references by ids, and references to components by URNs."""
    if not _contains_type(properties, ResourceReference):
        return properties

    def flatten(value: Value) -> Value:
        if isinstance(value, ResourceReference):
            return value.id if value.id is not None else value.urn
        return value

    return {key: rewrite(value, flatten) for key, value in properties.items()}


def has_secret(value: Value) -> bool:
    """Return whether the value is or contains a secret."""
    return _contains_type(value, SecretValue)


def has_asset(properties: Properties) -> bool:
    """Return whether the properties contain an asset or archive."""
    return _contains_type(properties, Asset)


def has_unknown(value: Value) -> bool:
    """Return whether the value is or contains an unknown value."""
    return _contains_type(value, Unknown)


def _contains_type(value: Value, kind: type) -> bool:
    """Return whether the value is or contains a value of this type, at any depth."""
    if type(value) in _SCALARS:
        return False
    if isinstance(value, kind):
        return True
    if isinstance(value, dict):
        return any(_contains_type(item, kind) for item in value.values() if type(item) not in _SCALARS)
    if isinstance(value, list):
        return any(_contains_type(item, kind) for item in value if type(item) not in _SCALARS)
    if isinstance(value, SecretValue):
        return _contains_type(value.value, kind)
    return isinstance(value, ResourceReference) and _contains_type(value.id, kind)


def is_equal(first: Value, second: Value) -> bool:
    """Compare two values as Pulumi does: a bool is not a number, and secrets are compared by content."""
    if isinstance(first, SecretValue) or isinstance(second, SecretValue):
        return is_equal(plaintext(first), plaintext(second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(is_equal(item, second[key]) for key, item in first.items())
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(is_equal(a, b) for a, b in zip(first, second, strict=True))
    if isinstance(first, Asset) and isinstance(second, Asset):
        hashes = first.wire.get("hash"), second.wire.get("hash")
        return hashes[0] == hashes[1] if any(hashes) else first.wire == second.wire
    return isinstance(first, bool) == isinstance(second, bool) and first == second


def mark_secrets(outputs: Properties, inputs: Properties) -> Properties:
    """Mark the outputs of a provider without secret support where inputs of the same name are secret."""
    marked = dict(outputs)
    for key, input_value in inputs.items():
        if key not in outputs:
            continue
        output_value = outputs[key]
        if isinstance(input_value, dict) and isinstance(output_value, dict):
            marked[key] = mark_secrets(output_value, input_value)
        elif has_secret(input_value):
            marked[key] = make_secret(output_value)
    return marked


def mark_secret_outputs(outputs: Properties, additional: list[str], inputs: Properties) -> Properties:
    """Mark outputs as secret if `additional` names them or an input of the same name is secret."""
    keys = ({*additional} - {"id"}) | {key for key, value in inputs.items() if isinstance(value, SecretValue)}
    return {key: make_secret(value) if key in keys else value for key, value in outputs.items()}


def to_display_json(value: Value) -> Any:  # noqa: PLR0911 - one return for each kind
    """Return JSON for events and the display: secrets are redacted, unknown values are placeholders."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, SecretValue):
        return {SIGNATURE: SECRET, "ciphertext": "[secret]"}
    if isinstance(value, Unknown):
        return UNKNOWN
    if isinstance(value, dict):
        return {key: to_display_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_display_json(item) for item in value]
    if isinstance(value, ResourceReference):
        return {SIGNATURE: RESOURCE, "urn": value.urn, "id": to_display_json(value.id)}
    if isinstance(value, Asset):
        return _drop_text(value.wire)
    return value


def _drop_text(wire: Any) -> Any:
    """Return an asset or archive without its text, which may be long."""
    if not isinstance(wire, dict):
        return wire
    return {key: _drop_text(part) for key, part in cast("dict[str, Any]", wire).items() if key != "text"}


def redact(value: Value) -> Any:
    """Return the value as JSON with `[secret]` in place of secrets."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, SecretValue):
        return "[secret]"
    if isinstance(value, dict):
        return {key: redact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [redact(item) for item in value]
    return to_display_json(value)


def to_output_json(value: Value, *, show_secrets: bool = False) -> Any:
    """Return an output as JSON with the contents of assets, as `pulumi stack output --json` prints it.

    Args:
        value: The output.
        show_secrets: Whether to decrypt secrets. Otherwise they are `[secret]`, also secret assets.
    """
    if type(value) in _SCALARS:
        return value
    if isinstance(value, SecretValue):
        return to_output_json(value.value, show_secrets=True) if show_secrets else "[secret]"
    if isinstance(value, Asset):
        value = value.wire
    if isinstance(value, dict):
        return {key: to_output_json(item, show_secrets=show_secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [to_output_json(item, show_secrets=show_secrets) for item in value]
    return to_display_json(value)
