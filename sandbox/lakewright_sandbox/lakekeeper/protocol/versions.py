"""Differences between server versions: when features appeared, and their former names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

Version = Literal["0.11", "0.12", "0.13", "0.14"]
NEWEST: Version = "0.14"
"""The development head, between releases."""
RELEASED: Version = "0.13"
"""The newest release, which is emulated by default."""

REPORTED: dict[Version, str] = {"0.11": "0.11.6", "0.12": "0.12.4", "0.13": "0.13.3", "0.14": "0.13.1"}
"""The version that a server reports. The newest, a build between releases, reports that of the last release."""

_V1 = "/management/v1"

# First version of calls, by path pattern of the routes.
CALLS = {
    rf"{_V1}/role/\{{role_id\}}/(members|member-of)(/.*)?": "0.13",
    rf"{_V1}/user/\{{user_id\}}/roles(/.*)?": "0.13",
    rf"{_V1}/(.*/)?grants(/.*)?": "0.14",
    rf"{_V1}/(permissions/tag|tag-definition)(/.*)?": "0.14",
    rf"{_V1}/(permissions/)?warehouse/\{{warehouse_id\}}/generic-table/.*": "0.13",
    r"/lakekeeper/v1/.*": "0.13",
    rf"{_V1}/warehouse/\{{warehouse_id\}}/(format-version-policy|managed-by)": "0.13",
    rf"{_V1}/warehouse-creation-validation": "0.14",
    rf"{_V1}/warehouse/\{{warehouse_id\}}/storage/validate-.*": "0.14",
    rf"{_V1}/warehouse/\{{warehouse_id\}}/namespace/\{{namespace_id\}}/move": "0.14",
}
# First version of fields of a warehouse and of its storage profile.
WAREHOUSE_FIELDS = {
    "storage-credential-type": "0.12",
    "managed-by": "0.13",
    "allowed-format-versions": "0.13",
    "default-format-version": "0.13",
}
PROFILE_FIELDS = {"sts-endpoint": "0.12", "storage-layout": "0.12"}
INFO_FIELDS = {"lakekeeper-version": "0.12"}
# Error types with the version that renamed them and their former names.
ERROR_TYPES = {"NoSuchWarehouseException": ("0.12", "WarehouseNotFound")}
QUEUES = {"soft_deletion": ("0.14", "tabular_expiration")}
# First version of actions, by kind of object and name.
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
    "generic-table": {"manage_tags": "0.14"},
    "role": {"read_role_assignments": "0.13", "manage_role_assignments": "0.13", "update_source_system": "0.13"},
    "user": {"read_role_assignments": "0.13"},
}
# Version that removed an action.
FORMER_ACTIONS = {"warehouse": {"update_storage_credential": "0.14"}}
ANY_ACTION = {"read_grants": "0.14", "grant_manage_tags": "0.14", "grant_tag_creator": "0.14"}
RELATIONS = {
    "project": {"tag_creator": "0.14"},
    "warehouse": {"manage_tags": "0.14"},
    "namespace": {"manage_tags": "0.14"},
    "table": {"manage_tags": "0.14"},
    "view": {"manage_tags": "0.14", "select": "0.12"},
    "generic-table": {"manage_tags": "0.14"},
}


def select_fields(version: str, body: Mapping[str, Any], since: Mapping[str, str]) -> dict[str, Any]:
    """Return a body without the fields that the version lacks."""
    return {name: value for name, value in body.items() if is_at_least(version, since.get(name, "0"))}


def error_type(version: str, kind: str) -> str:
    """Return an error's type as the version spells it."""
    return _find_former_name(ERROR_TYPES, version, kind)


def queue_name(version: str, queue: str) -> str:
    """Return a queue's name in the version."""
    return _find_former_name(QUEUES, version, queue)


def find_queue(version: str, name: str) -> str | None:
    """Return the queue that a request of this version names. The newest version accepts older names, too."""
    for queue, (since, before) in QUEUES.items():
        if name == before or (name == queue and is_at_least(version, since)):
            return queue
        if name == queue:
            return None
    return name


def _find_former_name(names: Mapping[str, tuple[str, str]], version: str, name: str) -> str:
    since, before = names.get(name, ("0", name))
    return name if is_at_least(version, since) else before


def is_at_least(version: str, minimum: str) -> bool:
    """Return whether a version is the wanted one or newer."""
    return _number(version) >= _number(minimum)


def has_call(version: str, path: str) -> bool:
    """Return whether the version has the call with that path."""
    since = (since for pattern, since in CALLS.items() if re.fullmatch(pattern, path))
    return all(is_at_least(version, first) for first in since)


def select_actions(version: str, kind: str, names: Iterable[str]) -> list[str]:
    """Return the actions that the version has."""
    since, until = ANY_ACTION | ACTIONS.get(kind, {}), FORMER_ACTIONS.get(kind, {})
    existing_names = [name for name in names if is_at_least(version, since.get(name, "0"))]
    return [name for name in existing_names if name not in until or not is_at_least(version, until[name])]


def select_relations(version: str, kind: str, names: Iterable[str]) -> list[str]:
    """Return the relations that the version has."""
    since = RELATIONS.get(kind, {})
    return [name for name in names if is_at_least(version, since.get(name, "0"))]


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
