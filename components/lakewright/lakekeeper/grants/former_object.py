"""The object that a grant was made on, if its name leads to another object or to none now.

Programs name tables and namespaces, and servers keep grants by id. A table keeps its id and its grants through a rename
and a restoration, so a grant remains after its name has changed. States of earlier versions do not have the id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from lakewright.lakekeeper.api.connection.privileges import GrantEntry, Object
from lakewright.lakekeeper.grants import target as grant_target

if TYPE_CHECKING:
    from lakewright.lakekeeper.api.connection.client import Client
    from lakewright.lakekeeper.grants.target import GrantTarget
    from lakewright.lakekeeper.provider.ownership_conflicts import Claim, Claims

RECORDED = "object_id"
"""Output of a grant: the server's id of the object that it was made on."""


def to_record(on: Object) -> dict[str, Any]:
    """Return the output that records the id of an object."""
    return {RECORDED: on.identity}


def copy_record(outs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded output, if the state has it."""
    return {RECORDED: outs[RECORDED]} if RECORDED in outs else {}


def find_former(client: Client, on: GrantTarget, current: Object | None, outs: Mapping[str, Any]) -> Object | None:
    """Return the recorded object; None if the name leads to it, or the state does not record its id.

    Args:
        client: The client.
        on: The object, as the program names it.
        current: The object with that name; None if there is none.
        outs: Outputs of the grant.
    """
    recorded_id = outs.get(RECORDED)
    if not recorded_id or (current is not None and current.identity == recorded_id):
        return None
    return grant_target.build_object(client, on, str(recorded_id))


def describe_drift(former: Object, on: GrantTarget) -> str:
    """Return the drift of a grant that remains on its former object."""
    return f"remains on {former.kind} {former.identity}, which {on} does not name now"


def is_declared(client: Client, claims: Claims, claim: Claim, former: Object, entry: GrantEntry) -> bool:
    """Return whether another resource of the run declares a grant on an object, under its present name."""
    targets = [cast("GrantTarget", other.on) for other in claims.list_others(claim, entry) if other.on is not None]
    objects = [grant_target.resolve(client, on) for on in targets if _has_kind_and_warehouse(on, former)]
    return any(other is not None and other.identity == former.identity for other in objects)


def _has_kind_and_warehouse(on: GrantTarget, former: Object) -> bool:
    """Return whether a name has the kind of an object, and its warehouse if the object is in a warehouse."""
    return on.type == former.kind and getattr(on, "warehouse_id", "") == former.warehouse_id
