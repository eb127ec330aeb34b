"""Read shares from the states of stacks, and permissions to adopt from their specs. No server is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lakewright.aws.access import find_end
from lakewright.drift.objects.sealed_values import seal_secrets
from lakewright.shares.share import Share, ShareKind
from lakewright.validation.documents import as_list, as_mapping, list_items
from lakewright.validation.moment import format_moment, parse_end

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState

    from lakewright.fleet.selection import SelectedStack
    from lakewright.fleet.states import StackState

_DYNAMIC = "pulumi-python:dynamic/lakekeeper:"
_ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
_SHARE_PART = ".share-"
"""Part of the names of the roles of shares: TENANT-WAREHOUSE.share-NAME."""


class _Names:
    """Names of objects by the ids that grants and members refer to."""

    def __init__(self, state: StackState) -> None:
        self._names: dict[str, str] = {}
        for resource in state.resources:
            if resource.type in {f"{_DYNAMIC}{kind}" for kind in ("Warehouse", "Role", "Project")}:
                self._names[str(resource.id)] = str(resource.inputs.get("name") or resource.id)

    def find(self, object_id: object) -> str:
        """Return the name of an object; its id if the state has no such object."""
        return self._names.get(str(object_id), str(object_id))


def list_shares(stack: SelectedStack, state: StackState) -> list[Share]:
    """Return the shares of a stack: from its state, and its spec's permissions to adopt that have an end."""
    names = _Names(state)
    shares = [
        share
        for resource in state.resources
        if not resource.delete and (read := _READERS.get(resource.type))
        for share in read(stack.name, resource, names)
    ]
    return shares + list(_list_adoptions(stack))


def _read_grant(stack: str, resource: ResourceState, names: _Names) -> Iterator[Share]:
    inputs, _ = seal_secrets(resource.inputs)
    role = inputs.get("role")
    principal = f"role:{names.find(role)}" if role else f"user:{inputs.get('user')}"
    on = _describe_target(as_mapping(inputs.get("on")), names)
    yield Share(stack, ShareKind.GRANT, principal, str(inputs.get("privilege")), on, inputs.get("until"))


def _read_members(stack: str, resource: ResourceState, names: _Names) -> Iterator[Share]:
    inputs, _ = seal_secrets(resource.inputs)
    ends, role = as_mapping(inputs.get("until")), f"role {names.find(inputs.get('role_id'))}"
    for user in as_list(inputs.get("users")):
        yield Share(stack, ShareKind.MEMBER, f"user:{user}", "member", role, ends.get(str(user)))


def _read_role_policy(stack: str, resource: ResourceState, _names: _Names) -> Iterator[Share]:
    name = resource.urn.rpartition("::")[2]
    warehouse, separator, share = name.rpartition(_SHARE_PART)
    if not separator:
        return
    inputs, _ = seal_secrets(resource.inputs)
    try:
        policy: dict[str, Any] = json.loads(str(inputs.get("policy")))
    except ValueError:
        policy = {}
    yield Share(stack, ShareKind.AWS_ROLE, share, "reads", f"warehouse {warehouse}", find_end(policy))


def _list_adoptions(stack: SelectedStack) -> Iterator[Share]:
    parts: dict[str, Mapping[str, Any]] = {"adopt": stack.spec}
    for section in ("warehouses", "tables", "views"):
        parts |= {f"{section}.{index}.adopt": part for index, part in list_items(stack.spec, section)}
    for path, part in parts.items():
        until = as_mapping(part.get("adopt")).get("until")
        if not isinstance(until, str):
            continue
        try:
            end = format_moment(parse_end(until))
        except ValueError:
            continue  # `spec validate` reports it
        name = str(part.get("name") or stack.name)
        yield Share(stack.name, ShareKind.ADOPT, path, "adopt", name, end)


def _describe_target(on: Mapping[str, Any], names: _Names) -> str:
    """Return kind and name of a target in the terms of specs."""
    kind = str(on.get("type"))
    inside = ".".join(str(on[key]) for key in ("namespace", "name") if on.get(key))
    warehouse = names.find(on["warehouse_id"]) if on.get("warehouse_id") else ""
    return " ".join([kind, ".".join(part for part in (warehouse, inside) if part)]).strip()


_READERS: dict[str, Callable[[str, ResourceState, _Names], Iterator[Share]]] = {
    f"{_DYNAMIC}Grant": _read_grant,
    f"{_DYNAMIC}RoleMembers": _read_members,
    _ROLE_POLICY: _read_role_policy,
}
"""Functions by type of resource."""
