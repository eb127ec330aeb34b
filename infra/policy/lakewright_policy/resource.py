"""Rules, and the resources that they check."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, cast


class _Marker(Enum):
    UNKNOWN = "known only after an `up`"


UNKNOWN: Final = _Marker.UNKNOWN
"""A value that a preview does not know. Rules do not judge it; `up` does."""


@dataclass(frozen=True)
class CheckedResource:
    """A resource with its inputs."""

    type: str
    name: str
    urn: str
    props: Mapping[str, Any]
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """URNs of the resources that each property depends on."""

    def is_known(self, *names: str) -> bool:
        """Return whether the values of these properties are known. A missing property is known."""
        return all(self.props.get(name) is not UNKNOWN for name in names)


Check = Callable[[CheckedResource], Iterable[str]]


@dataclass(frozen=True)
class ResourceRule:
    """A rule on each resource of some types. Its check yields one message for each violation."""

    name: str
    description: str
    types: re.Pattern[str]
    check: Check
    is_warning: bool = False
    in_trials: Check | None = None
    """The check in trials, if it differs."""

    def checks_type(self, resource_type: str) -> bool:
        """Return whether the rule is about a type of resources."""
        return bool(self.types.fullmatch(resource_type))

    def find(self, resource: CheckedResource, *, trial: bool = False) -> list[str]:
        """Return the violations of a resource. Only the configuration of the pack says that a stack is a trial."""
        check = self.in_trials if self.in_trials is not None and trial else self.check
        return list(check(resource)) if self.checks_type(resource.type) else []


@dataclass(frozen=True)
class StackRule:
    """A rule on all resources of a stack. Its check yields the URN and a message for each violation."""

    name: str
    description: str
    check: Callable[[Sequence[CheckedResource]], Iterable[tuple[str, str]]]


def allow(_resource: CheckedResource) -> Iterable[str]:
    """Find nothing: the check of a rule that trials need not keep."""
    return ()


def as_mapping(value: object) -> Mapping[str, Any]:
    """Return a value that is a mapping, else an empty mapping."""
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    """Return a value that is a list, a single value as a list, and nothing for None and unknown values."""
    if value is None or value is UNKNOWN:
        return []
    return cast(list[Any], value) if isinstance(value, list) else [value]
