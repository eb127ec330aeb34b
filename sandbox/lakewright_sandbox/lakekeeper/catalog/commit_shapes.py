"""The shapes of a commit's updates and requirements, which the framework checks before the handler.

Names and order come from Lakekeeper 0.13.3, which lists them in its refusals (422 in plain text).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from lakewright_sandbox.lakekeeper.protocol.requests import build_missing_field_error, unknown_name, wrong_type
from lakewright_sandbox.typed.json_values import is_object

Json = dict[str, Any]

MAP, LIST, NUMBER, TEXT = (dict, "a map"), (list, "a sequence"), (int, "i64"), (str, "a string")
Fields = Mapping[str, tuple[type, str]]

_SHARED: dict[str, Fields] = {
    "set-location": {"location": TEXT},
    "set-properties": {"updates": MAP},
    "remove-properties": {"removals": LIST},
}
TABLE_UPDATES: dict[str, Fields] = {
    "upgrade-format-version": {"format-version": NUMBER},
    "assign-uuid": {"uuid": TEXT},
    "add-schema": {"schema": MAP},
    "set-current-schema": {"schema-id": NUMBER},
    "add-spec": {"spec": MAP},
    "set-default-spec": {"spec-id": NUMBER},
    "add-sort-order": {"sort-order": MAP},
    "set-default-sort-order": {"sort-order-id": NUMBER},
    "add-snapshot": {"snapshot": MAP},
    "set-snapshot-ref": {"ref-name": TEXT, "type": TEXT, "snapshot-id": NUMBER},
    "remove-snapshots": {"snapshot-ids": LIST},
    "remove-snapshot-ref": {"ref-name": TEXT},
    **_SHARED,
    "remove-partition-specs": {"spec-ids": LIST},
    "set-statistics": {"statistics": MAP},
    "remove-statistics": {"snapshot-id": NUMBER},
    "set-partition-statistics": {"partition-statistics": MAP},
    "remove-partition-statistics": {"snapshot-id": NUMBER},
    "remove-schemas": {"schema-ids": LIST},
    "add-encryption-key": {"encryption-key": MAP},
    "remove-encryption-key": {"key-id": TEXT},
}
VIEW_UPDATES: dict[str, Fields] = {
    "assign-uuid": {"uuid": TEXT},
    "upgrade-format-version": {"format-version": NUMBER},
    "add-schema": {"schema": MAP},
    **_SHARED,
    "add-view-version": {"view-version": MAP},
    "set-current-view-version": {"view-version-id": NUMBER},
}
TABLE_REQUIREMENTS: dict[str, Fields] = {
    "assert-create": {},
    "assert-table-uuid": {"uuid": TEXT},
    "assert-ref-snapshot-id": {"ref": TEXT},
    "assert-last-assigned-field-id": {"last-assigned-field-id": NUMBER},
    "assert-current-schema-id": {"current-schema-id": NUMBER},
    "assert-last-assigned-partition-id": {"last-assigned-partition-id": NUMBER},
    "assert-default-spec-id": {"default-spec-id": NUMBER},
    "assert-default-sort-order-id": {"default-sort-order-id": NUMBER},
}
VIEW_REQUIREMENTS: dict[str, Fields] = {"assert-view-uuid": {"uuid": TEXT}}


def _shape_validator(tag: str, variants: Mapping[str, Fields]) -> BeforeValidator:
    def check(document: Any) -> Any:
        if not is_object(document):
            return document
        if tag not in document:
            raise build_missing_field_error(tag)
        name = document[tag]
        if not isinstance(name, str) or name not in variants:
            raise unknown_name(tag, name, variants)
        for field, (kind, expected) in variants[name].items():
            if field not in document:
                raise build_missing_field_error(field)
            if not isinstance(document[field], kind) or isinstance(document[field], bool):
                raise wrong_type(document[field], expected)
        return document

    return BeforeValidator(check)


TableUpdate = Annotated[Json, _shape_validator("action", TABLE_UPDATES)]
ViewUpdate = Annotated[Json, _shape_validator("action", VIEW_UPDATES)]
TableRequirement = Annotated[Json, _shape_validator("type", TABLE_REQUIREMENTS)]
ViewRequirement = Annotated[Json, _shape_validator("type", VIEW_REQUIREMENTS)]
