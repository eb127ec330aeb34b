"""Read an object, and compare it with its state as a refresh and its preview do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from lakewright_engine.model.paths import apply_ignore_changes
from pulumi.dynamic import ResourceProvider
from pydantic import BaseModel

from lakewright.drift.model import Difference, DifferenceKind
from lakewright.drift.objects.sealed_values import (
    REDACTED,
    Path,
    decrypt_secrets,
    find_secret_paths,
    mask_secrets,
    seal_secrets,
)
from lakewright.drift.session import StackResource
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider import inactive_warehouses, server_identity
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.diff import Change
from lakewright.lakekeeper.provider.inputs import Declared, Rotate

_FINGERPRINT = "credential_fingerprint"
_HIDDEN_DRIFT = ("drift", "unsafe")
"""Outputs of a table with changes that no property shows, and with changes that `up` refuses to undo."""
_REFUSED_PROPERTIES = frozenset({"format_version", "identifier"})
"""Properties with which the reason of a refusal begins. Other reasons are about columns."""


@dataclass
class ObservedObject:
    """An object as a provider reads it."""

    resource: StackResource
    provider: ResourceProvider
    inputs: dict[str, Any]
    """The recorded inputs."""
    outs: dict[str, Any] | None
    """The outputs after a refresh; None if the object does not exist."""
    found_inputs: dict[str, Any] | None
    """The inputs after a refresh; None if the provider returned none."""
    is_sealed: bool
    """Whether secrets are placeholders."""


def read(resource: StackResource, provider: ResourceProvider, *, unsealed: bool = False) -> ObservedObject:
    """Read an object. Secrets remain encrypted if the provider accepts placeholders for them.

    Raises:
        LakekeeperError: The server refused a call or did not respond.
        EngineError: A secret cannot be decrypted.
    """
    state = resource.state
    inputs, has_secret_inputs = seal_secrets(state.inputs)
    outputs, has_secret_outputs = seal_secrets(state.outputs)
    is_sealed = has_secret_inputs or has_secret_outputs
    if unsealed and is_sealed:
        return _read(resource, provider, decrypt_secrets(state.inputs), decrypt_secrets(state.outputs), is_sealed=False)
    try:
        return _read(resource, provider, inputs, outputs, is_sealed=is_sealed)
    except ValueError:
        if not is_sealed:
            raise
        # A validation refuses the placeholder.
        return _read(resource, provider, decrypt_secrets(state.inputs), decrypt_secrets(state.outputs), is_sealed=False)


def _read(
    resource: StackResource,
    provider: ResourceProvider,
    inputs: dict[str, Any],
    outputs: dict[str, Any],
    *,
    is_sealed: bool,
) -> ObservedObject:
    result = provider.read(resource.state.id, outputs)
    outs = result.outs if result.id else None
    return ObservedObject(resource, provider, inputs, outs, result.inputs, is_sealed)


def find_differences(observed: ObservedObject) -> list[Difference]:
    """Return the differences that an update of the same program would change.

    Raises:
        LakekeeperError: The server refused a call or did not respond.
        EngineError: A secret cannot be decrypted.
    """
    found_differences = list(_find_differences(observed))
    if found_differences and observed.is_sealed and observed.outs is not None:
        # A placeholder may have caused the difference.
        found_differences = list(_find_differences(read(observed.resource, observed.provider, unsealed=True)))
    return found_differences


def _find_differences(observed: ObservedObject) -> Iterator[Difference]:
    resource = observed.resource
    if observed.outs is None:
        if _is_ended(observed):
            return
        yield resource.difference("", DifferenceKind.GONE, declared_value=resource.state.id, found_value=None)
        return
    if resource.state.external or _is_as_declared(observed.provider, observed.inputs, observed.outs):
        return
    current_inputs = _compute_current_inputs(observed)
    changes = _compare(observed.provider, observed.outs, current_inputs)
    if changes:
        secrets = find_secret_paths(resource.state.inputs) + find_secret_paths(resource.state.outputs)
        for change in changes:
            is_secret = isinstance(change.mark, Rotate)
            yield resource.difference(
                change.path,
                DifferenceKind.CHANGED,
                declared_value=REDACTED if is_secret else _to_masked_json(change.new, change.path, secrets),
                found_value=REDACTED if is_secret else _to_masked_json(change.old, change.path, secrets),
            )
        return
    if not observed.provider.diff(resource.state.id, observed.outs, current_inputs).changes:
        return
    yield from _find_hidden_differences(resource, observed.outs)


def _is_ended(observed: ObservedObject) -> bool:
    """Return whether the end of a missing object has come."""
    provider = observed.provider
    if not isinstance(provider, LakekeeperProvider):
        return False
    lakekeeper_provider = cast("LakekeeperProvider[Any]", provider)
    return lakekeeper_provider.is_ended(lakekeeper_provider.args.from_state(observed.inputs))


def _is_as_declared(provider: ResourceProvider, inputs: dict[str, Any], outs: dict[str, Any]) -> bool:
    """Return whether a comparison can find no difference, without the cost of parsing the properties."""
    if not isinstance(provider, LakekeeperProvider) or outs.get(_FINGERPRINT) or server_identity.is_outdated(outs):
        return False
    if outs.get(inactive_warehouses.MARK) or any(outs.get(key) for key in _HIDDEN_DRIFT):
        return False
    fields = cast("LakekeeperProvider[Any]", provider).args.model_fields
    declared_properties, live_properties = (
        {key: value for key, value in props.items() if key in fields and value is not None} for props in (inputs, outs)
    )
    return declared_properties == live_properties


def _compute_current_inputs(observed: ObservedObject) -> dict[str, Any]:
    """Return the inputs of the same program now."""
    ignored = observed.resource.state.ignore_changes
    inputs: dict[str, Any] = apply_ignore_changes(observed.inputs, observed.found_inputs or observed.inputs, ignored)
    provider = observed.provider
    if not isinstance(provider, LakekeeperProvider):
        return inputs
    lakekeeper_provider = cast("LakekeeperProvider[Any]", provider)
    recorded_args = lakekeeper_provider.args.from_state(inputs)
    current_args = lakekeeper_provider.redeclare(
        recorded_args, lakekeeper_provider.args.from_state(observed.outs or {})
    )
    return inputs if current_args is recorded_args else current_args.props()


def _compare(provider: ResourceProvider, outs: dict[str, Any], current_inputs: dict[str, Any]) -> list[Change]:
    """Return the properties that differ. A credential and its fingerprint are a single change."""
    args: type[Declared] | None = getattr(provider, "args", None)
    if args is None:
        return []
    changes = difference.list_changes(args.from_state(outs), args.from_state(current_inputs))
    if len(changes) > 1:
        changes = [change for change in changes if change.path != _FINGERPRINT] or changes
    return changes


def _find_hidden_differences(resource: StackResource, outs: dict[str, Any]) -> Iterator[Difference]:
    """Yield the differences that no property shows."""
    hidden = outs.get(inactive_warehouses.MARK)
    if hidden:
        text = f"hidden, because warehouse {hidden} is inactive"
        yield resource.difference("", DifferenceKind.CHANGED, declared_value=resource.state.id, found_value=text)
        return
    lasting, refused = ([str(text) for text in cast(list[Any], outs.get(key) or [])] for key in _HIDDEN_DRIFT)
    by_property: dict[str, list[str]] = {}
    for text in dict.fromkeys(refused):
        if text not in lasting:
            name = text.partition(":")[0]
            by_property.setdefault(name if name in _REFUSED_PROPERTIES else "columns", []).append(text)
    secrets = find_secret_paths(resource.state.outputs)
    for name, texts in by_property.items():
        # The refresh before the refused update has replaced the declared value in the state.
        reason = f"refused by the last `up`: {' '.join(texts)}"
        value = _to_masked_json(outs.get(name), name, secrets)
        yield resource.difference(name, DifferenceKind.CHANGED, declared_value=reason, found_value=value)
    for text in dict.fromkeys(lasting) or ([] if by_property else ["not as recorded in the state"]):
        yield resource.difference("", DifferenceKind.CHANGED, declared_value=None, found_value=text)


def _to_masked_json(value: Any, path: str, secrets: list[Path]) -> Any:
    return mask_secrets(_to_plain_json(value), tuple(path.split(".")), secrets)


def _to_plain_json(value: Any) -> Any:
    if isinstance(value, Declared):
        return value.props()
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_none=True)
    if isinstance(value, dict):
        return {str(key): _to_plain_json(item) for key, item in cast(dict[Any, Any], value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = [_to_plain_json(item) for item in cast(list[Any], value)]
        return sorted(items, key=str) if isinstance(value, set | frozenset) else items
    return value
