"""The one place that says what a spec may declare but this version does not build: refused by name, never ignored."""

from collections.abc import Mapping
from typing import Any

from lakewright.spec.problems import Problem, SpecError
from lakewright.spec.tenant import TenantSpec

_UNBUILT = {"maintenance": "maintenance is not supported yet"}


def unbuilt(document: Mapping[str, Any]) -> list[Problem]:
    """The sections of a spec, as written or as read, that nothing would be made of."""
    return [Problem(name, f"{told}; remove the section") for name, told in _UNBUILT.items() if document.get(name)]


def refuse_unbuilt(spec: TenantSpec) -> None:
    """Raise SpecError if anything is declared that would not be built."""
    if problems := unbuilt(dict(spec)):
        raise SpecError(f"tenant {spec.name}", problems)
