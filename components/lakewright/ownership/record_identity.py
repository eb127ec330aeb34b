"""Identity of a stack's tenant record in each resource: the record id, as the marks of the stack's objects have it.

The deletion guard passes the record id to the providers of a run. A run with targets has no guard, nor has a run that
continues an interrupted `destroy`. Each resource therefore records the id as well. States of earlier versions lack
the id; the next update of a resource adds it.
"""

from collections.abc import Mapping
from typing import Any

RECORDED = "record_id"
"""Output of every resource of a tenant: id of the tenant's record."""
_INPUTS = ("record", "record_tag")
"""Inputs of resources that write the record id to a mark: `Project`, `DeletionGuard` and `StoreBucket`."""


def to_record(record_id: str | None, outs: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the output that records the id; empty without a tenant record.

    Args:
        record_id: The id in this run; None if the run does not know it.
        outs: Earlier outputs, whose id is kept if the run does not know it.
    """
    recorded_id = record_id or (outs or {}).get(RECORDED)
    return {RECORDED: recorded_id} if recorded_id else {}


def find_recorded(outs: Mapping[str, Any]) -> str | None:
    """Return the record id in a resource's outputs; None for resources without it."""
    values = [outs.get(name) for name in (RECORDED, *_INPUTS)]
    return next((value for value in values if isinstance(value, str) and value), None)


def is_outdated(record_id: str | None, outs: Mapping[str, Any]) -> bool:
    """Return whether outputs have another record id than the run: the tenant's record was created again."""
    recorded_id = outs.get(RECORDED)
    return bool(recorded_id and record_id and recorded_id != record_id)
