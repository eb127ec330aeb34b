"""Since which version the server has what: calls, actions, relations. What a version has not, it does not know."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

Version = Literal["0.11", "0.13", "0.14"]
NEWEST: Version = "0.14"

_V1 = "/management/v1"

# By path, as routes spell it.
CALLS = {
    rf"{_V1}/role/\{{role_id\}}/(members|member-of)(/.*)?": "0.13",
    rf"{_V1}/user/\{{user_id\}}/roles(/.*)?": "0.13",
    rf"{_V1}/(.*/)?grants(/.*)?": "0.14",
}
# By kind of object and name.
ACTIONS = {
    "project": {"create_tag": "0.14", "list_tags": "0.14"},
    "warehouse": {"set_format_version_policy": "0.13", "manage_tags": "0.14", "accept_moved_namespace": "0.14"},
    "namespace": {
        "create_generic_table": "0.13",
        "list_generic_tables": "0.13",
        "manage_tags": "0.14",
        "move": "0.14",
        "accept_moved_namespace": "0.14",
    },
    "table": {"manage_tags": "0.14"},
    "view": {"manage_tags": "0.14", "select": "0.12"},
    "role": {"read_role_assignments": "0.13", "manage_role_assignments": "0.13", "update_source_system": "0.13"},
    "user": {"read_role_assignments": "0.13"},
}
ANY_ACTION = {"read_grants": "0.14", "grant_manage_tags": "0.14", "grant_tag_creator": "0.14"}
RELATIONS = {
    "project": {"tag_creator": "0.14"},
    "warehouse": {"manage_tags": "0.14"},
    "namespace": {"manage_tags": "0.14"},
    "table": {"manage_tags": "0.14"},
    "view": {"manage_tags": "0.14", "select": "0.12"},
}


def is_at_least(version: str, wanted: str) -> bool:
    return _number(version) >= _number(wanted)


def has_call(version: str, path: str) -> bool:
    since = (since for pattern, since in CALLS.items() if re.fullmatch(pattern, path))
    return all(is_at_least(version, one) for one in since)


def actions_in(version: str, kind: str, names: Iterable[str]) -> list[str]:
    """Those of the actions that the version has."""
    since = ANY_ACTION | ACTIONS.get(kind, {})
    return [name for name in names if is_at_least(version, since.get(name, "0"))]


def relations_in(version: str, kind: str, names: Iterable[str]) -> list[str]:
    since = RELATIONS.get(kind, {})
    return [name for name in names if is_at_least(version, since.get(name, "0"))]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
