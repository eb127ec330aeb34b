"""Ids of existing objects that a tenant takes over, so that a preview can compare their contents.

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
        self._adopts = bool(spec.adopt) or any(warehouse.adopt for warehouse in spec.warehouses)

    def resolve_warehouse_id(self, spec: WarehouseSpec, resource_id: pulumi.Output[str]) -> pulumi.Output[str]:
        """Return the id of a warehouse: of the resource, else in a preview of the existing warehouse."""
        if not self._spec.adopts(spec):
            return resource_id
        return _choose_id(resource_id, self._warehouses.get(spec.name.casefold()))

    def resolve_role_id(self, name: str, resource_id: pulumi.Output[str]) -> pulumi.Output[str]:
        """Return the id of a role: of the resource, else in a preview of the existing role."""
        return _choose_id(resource_id, self._roles.get(name.casefold())) if self._spec.adopts_roles else resource_id

    @cached_property
    def _warehouses(self) -> dict[str, str]:
        try:
            warehouses = (
                get_warehouses(server=self._server, project_id=self._spec.project_id) if self._is_needed else []
            )
        except LakekeeperError:
            return {}  # the project does not exist yet, or the resources report the error
        return {warehouse.name.casefold(): warehouse.warehouse_id for warehouse in warehouses}

    @cached_property
    def _roles(self) -> dict[str, str]:
        try:
            roles = get_roles(server=self._server, project_id=self._spec.project_id) if self._is_needed else []
        except LakekeeperError:
            return {}
        return {role.name.casefold(): role.role_id for role in roles}

    @property
    def _is_needed(self) -> bool:
        return self._adopts and pulumi.runtime.is_dry_run()

    @property
    def _server(self) -> dict[str, object]:
        return self._platform.server


def _choose_id(resource_id: pulumi.Output[str], existing_id: str | None) -> pulumi.Output[str]:
    if existing_id is None:
        return resource_id

    def choose(value: Any) -> str:
        return existing_id if pulumi.contains_unknowns(value) else str(value)

    return resource_id.apply(choose, run_with_unknowns=True)
