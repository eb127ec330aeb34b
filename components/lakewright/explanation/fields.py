"""The documentation of a field of the spec, from the JSON Schema of its models. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lakewright_spark.suggestions import suggest_name

from lakewright.errors import LakewrightError
from lakewright.validation.documents import as_list, as_mapping, as_text
from lakewright.validation.yaml_text import load_yaml

_LIMITS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
    "minProperties": "at least {} entries",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "above {}",
    "exclusiveMaximum": "below {}",
    "pattern": "matches {}",
}


class UnknownFieldError(LakewrightError):
    """The spec has no such field. The message names the fields that there are."""

    exit_code = 2


@dataclass(frozen=True)
class FieldSummary:
    """A line about a field inside another field."""

    name: str
    type: str
    description: str


@dataclass(frozen=True)
class FieldDocumentation:
    """Documentation of a field. If the field depends on a choice, such as a backend, it exists once per variant."""

    path: str
    variant: str
    """The choice that it belongs to, such as `backend: aws`; empty if there is no choice."""
    type: str
    description: str
    is_required: bool
    default: Any = None
    """The default value; None if it is required or has none."""
    allowed: tuple[Any, ...] = ()
    """The allowed values; empty if there is no list."""
    limits: tuple[str, ...] = ()
    example: Any = None
    fields: tuple[FieldSummary, ...] = ()
    """The fields inside it."""

    def to_json(self) -> dict[str, Any]:
        """Return the documentation as JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Position:
    """A node of the schema, and how it was reached."""

    node: Mapping[str, Any]
    variant: str = ""
    is_required: bool = False
    trail: tuple[str, ...] = ()
    """The path in a spec; `*` is any position in a list or key of a map."""


def explain_field(schema: Mapping[str, Any], path: str, example: Any = None) -> list[FieldDocumentation]:
    """Return the documentation of a field, one for each variant that differs.

    Args:
        schema: JSON Schema of the spec, with `$defs`.
        path: Names of fields with dots between them; positions in lists and keys of maps may be left out. Empty for
            the whole spec.
        example: A spec to take examples from.

    Raises:
        UnknownFieldError: There is no such field.
    """
    positions = [_Position(schema)]
    done: list[str] = []
    for step in path.split(".") if path else []:
        children = [position for before in positions for position in _below(schema, before, step)]
        if not children:
            raise UnknownFieldError(_unknown(schema, done, step))
        positions = children
        done.append(step)
    documentation = [_document(schema, position, path, example) for position in positions]
    unique: dict[str, FieldDocumentation] = {}
    for item in documentation:
        unique.setdefault(repr({**asdict(item), "variant": ""}), item)
    return list(unique.values())


def list_field_names(schema: Mapping[str, Any], path: str) -> list[str]:
    """Return the names of the fields inside a field, sorted; none if there is no such field."""
    positions = [_Position(schema)]
    for step in path.split(".") if path else []:
        positions = [position for before in positions for position in _below(schema, before, step)]
    return sorted({name for position in positions for name in _list_fields(schema, position.node)})


def _unknown(schema: Mapping[str, Any], done: Sequence[str], step: str) -> str:
    names = list_field_names(schema, ".".join(done))
    parent = f"`{'.'.join(done)}`" if done else "the spec"
    hint = f"it has: {', '.join(names)}" if names else "it has no fields"
    return f"{parent} has no field `{step}`; {hint}{suggest_name(step, names)}"


def _below(schema: Mapping[str, Any], position: _Position, step: str) -> Iterator[_Position]:
    """Yield the nodes of a step: a field, a position in a list, or a key of a map."""
    for variant, node in _objects(schema, position):
        fields = as_mapping(node.get("properties"))
        if step in fields:
            is_required = step in as_list(node.get("required"))
            yield _Position(as_mapping(fields[step]), variant, is_required, (*position.trail, step))
        for key in ("additionalProperties", "items"):
            if not isinstance(node.get(key), Mapping) or step in fields:
                continue
            entry = _Position(as_mapping(node[key]), variant, trail=(*position.trail, "*"))
            # A field of the entries, else the key or position of one.
            if step in _list_fields(schema, entry.node):
                yield from _below(schema, entry, step)
            elif key == "additionalProperties" or step.isdigit() or step == "*":
                yield entry


def _objects(schema: Mapping[str, Any], position: _Position) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the alternatives of a node that may have fields or entries, each with the choice that it belongs to."""
    node = _resolve(schema, position.node)
    choices = [*as_list(node.get("oneOf")), *as_list(node.get("anyOf"))]
    if not choices:
        yield position.variant, node
    name = as_text(as_mapping(node.get("discriminator")).get("propertyName"))
    for choice in choices:
        alternative = _resolve(schema, as_mapping(choice))
        value = as_mapping(as_mapping(alternative.get("properties")).get(name or "")).get("const")
        variant = f"{name}: {value}" if value is not None else position.variant
        yield from _objects(schema, _Position(alternative, variant, trail=position.trail))


def _resolve(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a node with the definition that it refers to; its own keys override the definition's keys."""
    reference = as_text(node.get("$ref"))
    if reference is None:
        return node
    definition = as_mapping(as_mapping(schema.get("$defs")).get(reference.rpartition("/")[2]))
    return {**_resolve(schema, definition), **{key: value for key, value in node.items() if key != "$ref"}}


def _list_fields(schema: Mapping[str, Any], node: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the fields below a node, through lists, maps and alternatives."""
    fields: dict[str, Mapping[str, Any]] = {}
    for _, alternative in _objects(schema, _Position(node)):
        for name, child in as_mapping(alternative.get("properties")).items():
            fields.setdefault(name, as_mapping(child))
        for key in ("items", "additionalProperties"):
            if isinstance(alternative.get(key), Mapping):
                fields |= _list_fields(schema, as_mapping(alternative[key]))
    return fields


def _document(schema: Mapping[str, Any], position: _Position, path: str, example: Any) -> FieldDocumentation:
    node = _resolve(schema, position.node)
    alternatives = [alternative for _, alternative in _objects(schema, position)]
    allowed = [value for alternative in alternatives for value in _list_allowed_values(alternative)]
    return FieldDocumentation(
        path=path,
        variant=position.variant,
        type=_type(schema, node),
        description=_description(schema, node),
        is_required=position.is_required,
        default=node.get("default"),
        allowed=tuple(dict.fromkeys(allowed)),
        limits=tuple(dict.fromkeys(text for alternative in alternatives for text in _limits(alternative))),
        example=_example(example, position.trail, alternatives),
        fields=tuple(
            FieldSummary(name, _type(schema, child), _first_sentence(_description(schema, child)))
            for name, child in _list_fields(schema, node).items()
        ),
    )


def _description(schema: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    """Return the description of a node, or that of the entries or the model that it names."""
    node = _resolve(schema, node)
    if text := as_text(node.get("description")):
        return " ".join(text.split())
    inner: list[Any] = [node.get("items"), node.get("additionalProperties"), *as_list(node.get("anyOf"))]
    descriptions = (_description(schema, child) for part in inner if (child := as_mapping(part)))
    return next((text for text in descriptions if text), "")


def _type(schema: Mapping[str, Any], node: Mapping[str, Any]) -> str:
    """Return the type in words, such as `list of text`."""
    node = _resolve(schema, node)
    if choices := [*as_list(node.get("oneOf")), *as_list(node.get("anyOf"))]:
        names = [_type(schema, as_mapping(choice)) for choice in choices]
        return " or ".join(name for name in dict.fromkeys(names) if name != "null")
    name = str(node.get("type") or "any")
    if name == "array":
        return f"list of {_type(schema, as_mapping(node.get('items')))}"
    if name == "object" and isinstance(node.get("additionalProperties"), Mapping):
        return f"map of {_type(schema, as_mapping(node['additionalProperties']))}"
    return {"string": "text"}.get(name, name)


def _list_allowed_values(node: Mapping[str, Any]) -> list[Any]:
    if "const" in node:
        return [node["const"]]
    return as_list(node.get("enum")) or as_list(as_mapping(node.get("items")).get("enum"))


def _limits(node: Mapping[str, Any]) -> list[str]:
    return [text.format(node[key]) for key, text in _LIMITS.items() if key in node]


def _first_sentence(text: str) -> str:
    head, separator, _ = text.partition(". ")
    return head + "." if separator else text


def _example(example: Any, steps: Sequence[str], alternatives: Sequence[Mapping[str, Any]]) -> Any:
    """Return a value of the example spec at a path, else a value that follows from the schema."""
    example_value = next(_find_values(example, steps), None) if steps else None
    if example_value is not None:
        return example_value
    for node in alternatives:
        if values := [*as_list(node.get("examples")), *_list_allowed_values(node)]:
            return values[-1]
    return next((node["default"] for node in alternatives if node.get("default") is not None), None)


def _find_values(value: Any, steps: Sequence[str]) -> Iterator[Any]:
    """Yield the values at a path."""
    if not steps:
        yield value
        return
    entries = as_mapping(value)
    if steps[0] in entries:
        yield from _find_values(entries[steps[0]], steps[1:])
    elif steps[0] == "*":
        for entry in [*entries.values(), *as_list(value)]:
            yield from _find_values(entry, steps[1:])


_FILE = Path(__file__).with_name("example.yaml")


def example_spec() -> Any:
    """Return the example."""
    return load_yaml(_FILE.read_text(encoding="utf-8"))
