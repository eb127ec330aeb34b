"""The probes of `lakewright verify`, in their order. A new probe is a function in `probes/` and a line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from lakewright.client_access.check import Attempt, Note
from lakewright.verify.probes.foreign_warehouses import probe_foreign_catalog, probe_foreign_signing
from lakewright.verify.probes.identity import probe_authorization, probe_identity
from lakewright.verify.probes.management import probe_management
from lakewright.verify.probes.pods import probe_metadata_address, probe_unit_secrets
from lakewright.verify.probes.table_access import (
    probe_bucket_policy,
    probe_bucket_root,
    probe_other_prefixes,
    probe_other_tables,
    probe_table_round_trip,
)
from lakewright.verify.probes.warehouse_roles import probe_warehouse_roles
from lakewright.verify.session.sessions import IdentitySession, TenantSession, WarehouseSession

Results = Iterable[Attempt | Note]


class Turn(Enum):
    """When a probe runs, relative to other probes."""

    FIRST = "first"
    """Before the other probes of identities: its evidence is from before their first request."""
    TOGETHER = "together"
    """Concurrently with other probes, for all identities and warehouses."""
    ONE_BY_ONE = "one by one"
    """Concurrently with other probes, but for one identity and warehouse at a time: it changes their shared state."""


@dataclass(frozen=True)
class TenantProbe:
    """A probe that runs once."""

    name: str
    run: Callable[[TenantSession], Results]
    turn: Turn = Turn.TOGETHER


@dataclass(frozen=True)
class IdentityProbe:
    """A probe that runs for each identity of the tenant's units and jobs."""

    name: str
    run: Callable[[IdentitySession], Results]
    turn: Turn = Turn.TOGETHER


@dataclass(frozen=True)
class WarehouseProbe:
    """A probe that runs for each identity in each of its warehouses."""

    name: str
    run: Callable[[WarehouseSession], Results]
    turn: Turn = Turn.TOGETHER


Probe = TenantProbe | IdentityProbe | WarehouseProbe

PROBES: Sequence[Probe] = (
    IdentityProbe("identity", probe_identity, Turn.FIRST),
    IdentityProbe("authorization", probe_authorization),
    WarehouseProbe("table", probe_table_round_trip),
    WarehouseProbe("other-tables", probe_other_tables),
    WarehouseProbe("other-prefixes", probe_other_prefixes),
    WarehouseProbe("bucket-root", probe_bucket_root),
    WarehouseProbe("bucket-policy", probe_bucket_policy, Turn.ONE_BY_ONE),
    IdentityProbe("foreign-catalog", probe_foreign_catalog),
    WarehouseProbe("foreign-signing", probe_foreign_signing),
    IdentityProbe("management", probe_management, Turn.ONE_BY_ONE),
    TenantProbe("warehouse-roles", probe_warehouse_roles),
    TenantProbe("metadata-address", probe_metadata_address),
    TenantProbe("unit-secrets", probe_unit_secrets),
)
