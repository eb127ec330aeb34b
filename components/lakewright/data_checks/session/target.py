"""The tenant whose checks are evaluated: its spec, its environment, and the secrets that they refer to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakewright.environment.environment import Environment
from lakewright.spec import TenantSpec


@dataclass(frozen=True)
class CheckTarget:
    """One tenant."""

    stack: str
    spec: TenantSpec
    environment: Environment
    resolve: Callable[[str], str]
    """Returns the secret of a reference."""
