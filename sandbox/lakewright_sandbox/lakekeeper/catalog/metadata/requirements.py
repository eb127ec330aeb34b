"""Requirements of a commit on the current table or view. A violated requirement is a conflict: 409."""

from __future__ import annotations

from typing import Any

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError

Json = dict[str, Any]

FIELDS = {
    "assert-current-schema-id": ("current-schema-id", "current-schema-id", "Current schema id does not match"),
    "assert-last-assigned-field-id": (
        "last-assigned-field-id",
        "last-column-id",
        "Last assigned field id does not match",
    ),
    "assert-last-assigned-partition-id": (
        "last-assigned-partition-id",
        "last-partition-id",
        "Last assigned partition id does not match",
    ),
    "assert-default-spec-id": ("default-spec-id", "default-spec-id", "Default spec id does not match"),
    "assert-default-sort-order-id": (
        "default-sort-order-id",
        "default-sort-order-id",
        "Default sort order id does not match",
    ),
}


def check_requirements(requirements: list[Json], document: Json | None) -> None:
    """Raise 409 for a violated requirement; `document` is None if the table does not exist yet."""
    for requirement in requirements:
        kind = requirement.get("type")
        if kind == "assert-create":
            if document is not None:
                raise _conflict("Table already exists")
        elif document is None:
            raise _conflict("Table does not exist")
        elif kind in ("assert-table-uuid", "assert-view-uuid"):
            uuid = document.get("table-uuid") or document.get("view-uuid")
            if requirement["uuid"] != uuid:
                noun = "Table" if kind == "assert-table-uuid" else "View"
                raise _conflict(f"{noun} UUID does not match", requirement["uuid"], uuid)
        elif kind == "assert-ref-snapshot-id":
            _check_reference(requirement, document)
        elif kind in FIELDS:
            field, key, message = FIELDS[kind]
            if requirement[field] != document.get(key):
                raise _conflict(message, requirement[field], document.get(key))
        else:
            raise ApiError(400, "UnsupportedRequirement", f"Unknown requirement type `{kind}`.")


def _check_reference(requirement: Json, document: Json) -> None:
    name, expected_snapshot = requirement["ref"], requirement.get("snapshot-id")
    reference = document.get("refs", {}).get(name)
    if reference is None:
        if expected_snapshot is not None:
            raise _conflict(f"Branch or tag `{name}` not found")
    elif expected_snapshot is None:
        raise _conflict(f"Branch or tag `{name}` was created concurrently")
    elif reference["snapshot-id"] != expected_snapshot:
        raise _conflict(f"Branch or tag `{name}` has changed", expected_snapshot, reference["snapshot-id"])


def _conflict(reason: str, expected: Any = None, actual: Any = None) -> ApiError:
    context = "" if expected is None else f", context: {{ expected: {expected}, found: {actual} }}"
    message = f"CatalogCommitConflicts{context} => Requirement failed: {reason}"
    return ApiError(409, "CatalogCommitConflicts", message)
