"""Turn the objects that a provider read into differences. Values of secrets are `[secret]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from lakewright_engine.model.paths import parse_path
from lakewright_engine.model.properties import redact
from lakewright_engine.model.resources import Properties, SecretValue
from lakewright_engine.steps.object_read import ObjectRead

from lakewright.drift.model import Actor, Difference, DifferenceKind
from lakewright.drift.session import StackResource

FindActor = Callable[[StackResource, ObjectRead, str], Actor | None]
"""Returns the principal that changed a property of an object that was read; None if it is not known."""

SECRET = "[secret]"  # noqa: S105 - the placeholder
_SECRET_KIND = "kubernetes:core/v1:Secret"  # noqa: S105 - a type
_SECRET_FIELDS = ("data", "stringData")


def find_differences(
    resource: StackResource, read: ObjectRead, find_actor: FindActor | None = None
) -> Iterator[Difference]:
    """Yield the differences that a refresh of the resource displays."""
    if read.new is None:
        yield resource.difference("", DifferenceKind.GONE, declared_value=resource.state.id, found_value=None)
        return
    if resource.state.external:
        return
    if read.result == "update":
        paths = sorted(read.diff.detailed if read.diff.detailed is not None else read.diff.keys)
        for path in paths or [""]:
            declared_value = _read_value(resource, resource.state.inputs, path)
            found_value = _read_value(resource, {**read.new.outputs, **read.new.inputs}, path)
            actor = find_actor(resource, read, path) if find_actor else None
            yield resource.difference(
                path, DifferenceKind.CHANGED, declared_value=declared_value, found_value=found_value, actor=actor
            )
    elif read.new.init_errors:
        # An update of the stack updates an object that failed to initialize.
        reasons = "; ".join(" ".join(reason.split()) for reason in read.new.init_errors)
        yield resource.difference("status", DifferenceKind.CHANGED, declared_value="ready", found_value=reasons)


def create_unreachable_difference(resource: StackResource, reason: str) -> Difference:
    """Return the difference of a resource that could not be checked."""
    return resource.difference("", DifferenceKind.UNREACHABLE, declared_value=resource.state.id, found_value=reason)


def _read_value(resource: StackResource, properties: Properties, path: str) -> Any:
    """Return the value at a path, None if there is none; `[secret]` for a secret and for values inside of a secret."""
    parts = parse_path(path)
    if resource.state.type == _SECRET_KIND and parts[:1] and parts[0] in _SECRET_FIELDS:
        return SECRET
    if _is_in_secret(resource.state.inputs, parts):
        return SECRET
    value: Any = properties
    for part in parts:
        if isinstance(value, SecretValue):
            return SECRET
        value = _get_member(value, part)
    return redact(value)


def _is_in_secret(properties: Properties, parts: list[str | int]) -> bool:
    """Return whether the state has a secret at a path or around it."""
    value: Any = properties
    for part in parts:
        if isinstance(value, SecretValue):
            return True
        value = _get_member(value, part)
    return isinstance(value, SecretValue)


def _get_member(value: Any, part: str | int) -> Any:
    if isinstance(value, dict):
        return cast(dict[object, Any], value).get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(cast(list[Any], value)):
        return cast(list[Any], value)[part]
    return None
