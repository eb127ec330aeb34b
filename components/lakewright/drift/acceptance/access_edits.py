"""Accept changes of grants and of members of roles."""

from __future__ import annotations

from pydantic import ValidationError

from lakewright.drift.acceptance.edits import REMOVED, SpecEdit, WrittenSpec
from lakewright.drift.model import Difference, DifferenceKind
from lakewright.field_map.marks import NotExpressibleError
from lakewright.spec.grant import GrantSpec
from lakewright.validation.documents import as_list, as_mapping, list_items


def accept_grant(difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    """Return the edit for a grant that was revoked."""
    if difference.kind is not DifferenceKind.GONE:
        raise NotExpressibleError(f"a grant has no property that changes: {difference.found}")
    for index, written in list_items(spec.document, "grants"):
        try:
            grant = GrantSpec.model_validate(written)
        except ValidationError:
            continue
        if grant.resource_name(spec.tenant) == difference.resource:
            return [SpecEdit(("grants", index), REMOVED)]
    raise NotExpressibleError(
        "the grant belongs to a role that each warehouse has; `standard_roles: false` drops them all"
    )


def accept_role_members(difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    """Return the edits for the users of a role."""
    if difference.kind is not DifferenceKind.CHANGED or difference.property != "users":
        raise NotExpressibleError("the spec declares users as members of a role, and nothing else")
    role = difference.resource.removeprefix(f"{spec.tenant}-")
    declared_users, found_users = as_list(difference.declared), as_list(difference.found)
    path = ("role_members", role, "users")
    # An entry of a user who is a member for a time is a mapping.
    written = [as_mapping(entry).get("user") or entry for entry in spec.get_list(*path)]
    removed = [user for user in declared_users if user not in found_users]
    if unlisted := [user for user in removed if user not in written]:
        raise NotExpressibleError(
            f"{', '.join(map(str, unlisted))}: a member by a computing unit, a job or a group, which the spec keeps"
        )
    added = [user for user in found_users if user not in declared_users]
    remaining_users = [user for user in written if user not in removed]
    if not remaining_users and not added:
        has_group = spec.get_value("role_members", role, "group") is not None
        return [SpecEdit(path if has_group else path[:-1], REMOVED)]
    if not written:
        return [SpecEdit(path, added)]
    edits = [
        SpecEdit((*path, written.index(user)), REMOVED) for user in sorted(removed, key=written.index, reverse=True)
    ]
    return edits + [SpecEdit((*path, len(remaining_users) + offset), user) for offset, user in enumerate(added)]
