"""Record roles: Lakekeeper roles without members or grants, whose description is the mark of an owner.

Each project of a tenant has a record role, whose mark covers everything in the project. `Project` creates it, and
deletes it with the project. In a project that several tenants share, each warehouse has a record role instead.
Archived warehouses have further record roles, which `ownership.archive_mark` describes. So has a tenant whose limits
are enforced at present (`ownership.limit_mark`).
Everything else that lists roles leaves record roles out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

RECORD_ROLE = "lakewright-record"
"""Name of a project's record role. Specs must not declare a role with the name of a record role."""
ARCHIVE_ROLE = "lakewright-archive"
"""Beginning of the name of the role that records the archiving of a warehouse."""
ANNOUNCEMENT_ROLE = "lakewright-purge"
"""Beginning of the name of the role that announces the purge of an archived warehouse."""
LIMIT_ROLE = "lakewright-limit"
"""Beginning of the name of the role that records the enforcement of a tenant's limits."""
_ID = "-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_RECORD_NAME = re.compile(
    rf"{RECORD_ROLE}({_ID})?|({ARCHIVE_ROLE}|{ANNOUNCEMENT_ROLE}){_ID}|{LIMIT_ROLE}-[0-9a-f]+", re.IGNORECASE
)

_OWN_PROVIDER = "lakekeeper"
"""Provider of roles that users of the server create. Servers before 0.12 name no provider."""


def is_record_role(role: Mapping[str, Any]) -> bool:
    """Return whether a role in the server's JSON is a record role. The server ignores case in names.

    A role of an identity provider is not: its name may come from a directory, in which other users create groups.
    """
    return is_record_name(str(role.get("name", ""))) and (role.get("provider-id") or _OWN_PROVIDER) == _OWN_PROVIDER


def is_record_name(name: str) -> bool:
    """Return whether a name is that of record roles."""
    return _RECORD_NAME.fullmatch(name) is not None


def format_warehouse_record(warehouse_id: str) -> str:
    """Return the name of the record role of a warehouse in a shared project."""
    return f"{RECORD_ROLE}-{warehouse_id}"


def format_archive_record(warehouse_id: str) -> str:
    """Return the name of the role that records the archiving of a warehouse."""
    return f"{ARCHIVE_ROLE}-{warehouse_id}"


def format_announcement(warehouse_id: str) -> str:
    """Return the name of the role that announces the purge of a warehouse."""
    return f"{ANNOUNCEMENT_ROLE}-{warehouse_id}"


def format_limit_record(record_id: str) -> str:
    """Return the name of the role that records the enforcement of a tenant's limits.

    Args:
        record_id: Id of the tenant's record. Several tenants may share a project.
    """
    return f"{LIMIT_ROLE}-{record_id}"


def is_limit_record(role_name: str) -> bool:
    """Return whether a role of this name records the enforcement of limits."""
    return is_record_name(role_name) and role_name.casefold().startswith(f"{LIMIT_ROLE}-")


def find_recorded_warehouse(role_name: str) -> str | None:
    """Return the id of the warehouse of a shared project whose owner a role records; None for other roles."""
    return _find_warehouse_id(role_name, RECORD_ROLE)


def find_archived_warehouse(role_name: str) -> str | None:
    """Return the id of the warehouse whose archiving a role records; None for other roles."""
    return _find_warehouse_id(role_name, ARCHIVE_ROLE)


def find_announced_warehouse(role_name: str) -> str | None:
    """Return the id of the warehouse whose purge a role announces; None for other roles."""
    return _find_warehouse_id(role_name, ANNOUNCEMENT_ROLE)


def _find_warehouse_id(role_name: str, beginning: str) -> str | None:
    folded_name = role_name.casefold()
    is_record = is_record_name(folded_name) and folded_name.startswith(f"{beginning}-")
    return folded_name.removeprefix(f"{beginning}-") if is_record else None


def select_records(roles: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the record roles among the roles of a project, by name in lower case."""
    return {str(role["name"]).casefold(): role for role in roles if is_record_role(role)}


def exclude_record_roles(roles: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the roles of a project that are not record roles."""
    return [role for role in roles if not is_record_role(role)]
