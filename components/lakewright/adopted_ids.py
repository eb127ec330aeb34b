"""Ids of existing objects that a tenant takes over, so that a preview can compare what is in them.

A preview does not know the id of an object that the stack does not have yet. Without it, the namespaces, tables and
grants of an existing warehouse could not be looked up before `up`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pulumi

from lakewright.environment.platform import Platform
from lakewright.lakekeeper import get_roles, get_warehouses
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.spec import TenantSpec, WarehouseSpec


class AdoptedIds:
    """Looks up warehouses and roles in previews of tenants with `adopt`; each list is read once."""

    def __init__(self, spec: TenantSpec, platform: Platform) -> None:
        """Look up nothing yet."""
        self._spec, self._platform = spec, platform
        self._adopts = spec.adopt or any(warehouse.adopt for warehouse in spec.warehouses)

    def warehouse_id(self, spec: WarehouseSpec, made: pulumi.Output[str]) -> pulumi.Output[str]:
        """Return the id of a warehouse: that of the resource, else in a preview that of the existing one."""
        if not self._spec.adopts(spec):
            return made
        return _known_id(made, self._warehouses.get(spec.name.casefold()))

    def role_id(self, name: str, made: pulumi.Output[str]) -> pulumi.Output[str]:
        """Return the id of a role: that of the resource, else in a preview that of the existing one."""
        return _known_id(made, self._roles.get(name.casefold())) if self._spec.adopt else made

    @cached_property
    def _warehouses(self) -> dict[str, str]:
        try:
            found = get_warehouses(server=self._server, project_id=self._spec.project_id) if self._looks else []
        except LakekeeperError:
            return {}  # the project does not exist yet, or the resources report the error
        return {warehouse.name.casefold(): warehouse.warehouse_id for warehouse in found}

    @cached_property
    def _roles(self) -> dict[str, str]:
        try:
            found = get_roles(server=self._server, project_id=self._spec.project_id) if self._looks else []
        except LakekeeperError:
            return {}
        return {role.name.casefold(): role.role_id for role in found}

    @property
    def _looks(self) -> bool:
        return self._adopts and pulumi.runtime.is_dry_run()

    @property
    def _server(self) -> dict[str, object]:
        return self._platform.server


def _known_id(made: pulumi.Output[str], found: str | None) -> pulumi.Output[str]:
    if found is None:
        return made

    def choose(value: Any) -> str:
        return found if pulumi.contains_unknowns(value) else str(value)

    return made.apply(choose, run_with_unknowns=True)
