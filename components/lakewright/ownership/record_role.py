"""The record role of a project: a Lakekeeper role without members or grants, whose description is the owner's mark.

Each project of a tenant has a record role. `Project` creates it, and deletes it with the project. Everything else
that lists roles leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lakewright.ownership.mark import OwnershipMark, parse_description

RECORD_ROLE = "lakewright-record"
"""Name of the record role. Specs must not declare a role of this name."""


_OWN_PROVIDER = "lakekeeper"
"""Provider of roles that users of the server create. Servers before 0.12 name no provider."""


def is_record_role(role: Mapping[str, Any]) -> bool:
    """Return whether a role in the server's JSON is the record of its project. The server ignores case in names.

    A role of an identity provider is not: its name may come from a directory, in which other users create groups.
    """
    return is_record_name(str(role.get("name", ""))) and (role.get("provider-id") or _OWN_PROVIDER) == _OWN_PROVIDER


def is_record_name(name: str) -> bool:
    """Return whether a name is that of record roles."""
    return name.casefold() == RECORD_ROLE


def exclude_record_role(roles: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the roles of a project that are not its record."""
    return [role for role in roles if not is_record_role(role)]


def find_mark(roles: Iterable[Mapping[str, Any]]) -> OwnershipMark:
    """Return the mark of a project from the list of its roles; an empty mark if it has no record role.

    Raises:
        UnreadableMarkError: The record role has no mark in its description.
    """
    record = next((role for role in roles if is_record_role(role)), None)
    return OwnershipMark() if record is None else parse_description(record.get("description"))
