"""Compare property values with the values of a plan. Unknown values of the plan match any value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lakewright_engine.display.property_diff import format_value
from lakewright_engine.model.properties import is_equal, redact
from lakewright_engine.model.resources import Asset, Properties, ResourceReference, SecretValue, Unknown, Value
from lakewright_engine.model.signatures import UNKNOWN

_INTERNAL = "__"


class _Absent:
    pass


_ABSENT = _Absent()


@dataclass(frozen=True)
class Mismatch:
    """A property that differs from the plan. The texts hold no secrets."""

    path: str
    planned: str
    actual: str

    def __str__(self) -> str:
        """Return the property and both values."""
        return f"{self.path}: planned {self.planned}, now {self.actual}"


def first_mismatch(planned: Properties, actual: Properties, ignored: Iterable[str] = ()) -> Mismatch | None:
    """Return the first property that differs from the plan, in the order of their paths.

    Args:
        planned: The properties in the plan.
        actual: The properties now.
        ignored: Paths of properties that may differ, such as `metadata.resourceVersion`.
    """
    left_out = tuple(ignored)
    for mismatch in _mismatches("", planned, actual):
        if not any(mismatch.path == path or mismatch.path.startswith((f"{path}.", f"{path}[")) for path in left_out):
            return mismatch
    return None


def is_unknown(value: object) -> bool:
    """Return whether a value of a plan is unknown."""
    return (
        isinstance(value, Unknown) or value == UNKNOWN or (isinstance(value, SecretValue) and is_unknown(value.value))
    )


def _mismatches(path: str, planned: Value | _Absent, actual: Value | _Absent) -> Iterator[Mismatch]:
    if is_unknown(planned):
        return
    if isinstance(planned, dict) and isinstance(actual, dict):
        yield from _member_mismatches(path, planned, actual)
    elif isinstance(planned, list) and isinstance(actual, list) and len(planned) == len(actual):
        for index, (planned_item, actual_item) in enumerate(zip(planned, actual, strict=True)):
            yield from _mismatches(f"{path}[{index}]", planned_item, actual_item)
    elif isinstance(planned, SecretValue) and isinstance(actual, SecretValue):
        if any(True for _ in _mismatches(path, planned.value, actual.value)):
            yield Mismatch(path, "a secret", "another secret")
    elif isinstance(planned, SecretValue) != isinstance(actual, SecretValue):
        # If one of the values is secret, the other value is not displayed either.
        yield Mismatch(path, _secrecy(planned), _secrecy(actual))
    elif isinstance(planned, ResourceReference) and isinstance(actual, ResourceReference):
        same_id = planned.id is None or is_unknown(planned.id) or is_equal(planned.id, actual.id)
        if planned.urn != actual.urn or not same_id:
            yield Mismatch(path, planned.urn, actual.urn)
    elif isinstance(planned, _Absent) or isinstance(actual, _Absent) or not is_equal(planned, actual):
        yield Mismatch(path, _text(path, planned), _text(path, actual))


def _member_mismatches(path: str, planned: Mapping[str, Value], actual: Mapping[str, Value]) -> Iterator[Mismatch]:
    for key in sorted({*planned, *actual}):
        inner = f"{path}.{key}" if path else key
        yield from _mismatches(inner, planned.get(key, _ABSENT), actual.get(key, _ABSENT))


def _secrecy(value: Value | _Absent) -> str:
    return "a secret" if isinstance(value, SecretValue) else "nothing" if isinstance(value, _Absent) else "no secret"


def _text(path: str, value: Value | _Absent) -> str:
    if isinstance(value, _Absent):
        return "nothing"
    if isinstance(value, Asset):
        return f"a file with hash {str(value.wire.get('hash'))[:12]}"
    return "[internal]" if path.startswith(_INTERNAL) else format_value(redact(value))
