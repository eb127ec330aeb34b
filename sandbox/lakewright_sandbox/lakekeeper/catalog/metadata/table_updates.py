"""Apply the updates of a commit to a table's metadata (Iceberg table spec, format versions 1 to 3)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from lakewright_sandbox.lakekeeper.catalog.metadata.binding import find_name_fault, find_order_fault, find_spec_fault
from lakewright_sandbox.lakekeeper.catalog.metadata.document_rules import find_document_fault
from lakewright_sandbox.lakekeeper.catalog.metadata.fresh_ids import field_ids
from lakewright_sandbox.lakekeeper.catalog.metadata.stored_rows import check_references, keep_stored
from lakewright_sandbox.lakekeeper.catalog.metadata.table_builder import Json, TableBuilder
from lakewright_sandbox.lakekeeper.catalog.metadata.table_metadata import FIRST_PARTITION_ID
from lakewright_sandbox.lakekeeper.catalog.metadata.table_properties import check_not_modified, check_not_removed
from lakewright_sandbox.lakekeeper.catalog.metadata.table_snapshots import SNAPSHOT_UPDATES
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError


def apply_updates(builder: TableBuilder, updates: list[Json]) -> Json:
    """Return the document as the database has it after a commit.

    Raises 400 for an update that is unknown or invalid, 409 if the updates together leave an invalid document, and 503
    if the database refuses a reference.
    """
    before = copy.deepcopy(builder.document)
    for update in updates:
        action = update.get("action", "")
        handler = UPDATES.get(action)
        if handler is None:
            raise ApiError(400, "UnsupportedTableUpdate", f"Unknown table update `{action}`.")
        try:
            handler(builder, update)
        except KeyError as missing:
            message = f"Table update `{action}` lacks the field {missing}."
            raise ApiError(400, "InvalidTableUpdate", message) from None
    document = builder.document
    if document != before:
        document["last-updated-ms"] = builder.last_updated or builder.now_millis
    _check_built(builder)
    check_references(document, before)
    keep_stored(document, before)
    return document


def _check_built(builder: TableBuilder) -> None:
    """Raise 409 if the current schema does not fit the partition spec and sort order, or the document breaks a rule."""
    document = builder.document
    schema = builder.find("schemas", "schema-id", document["current-schema-id"])
    spec = builder.find("partition-specs", "spec-id", document["default-spec-id"])
    orders = {order["order-id"]: order["fields"] for order in document["sort-orders"]}
    order = orders.get(document["default-sort-order-id"], [])
    builder.drop_intermediate_snapshots()
    fault = find_spec_fault(spec["fields"], schema) or find_order_fault(order, schema) or find_document_fault(document)
    if fault:
        raise ApiError(409, "CommitFailedException", fault)


def _assign_uuid(builder: TableBuilder, update: Json) -> None:
    if update["uuid"] != builder.document["table-uuid"]:
        message = f"Cannot reassign the table's uuid {builder.document['table-uuid']} to {update['uuid']}."
        raise ApiError(400, "InvalidTableUpdate", message)


def _upgrade_format_version(builder: TableBuilder, update: Json) -> None:
    version, current = update["format-version"], builder.document["format-version"]
    if version < current:
        message = f"Cannot downgrade the table from format version {current} to {version}."
        raise ApiError(400, "InvalidTableUpdate", message)
    if version not in builder.allowed_format_versions and version != current:
        message = (
            f"Format version {version} is not allowed in this warehouse. Allowed: {builder.allowed_format_versions}"
        )
        raise ApiError(400, "FormatVersionNotAllowed", message)
    builder.document["format-version"] = version
    if version >= 2:
        builder.document.setdefault("last-sequence-number", 0)
        builder.document.pop("schema", None)
        builder.document.pop("partition-spec", None)
    if version >= 3:
        builder.document.setdefault("next-row-id", 0)


def _add_schema(builder: TableBuilder, update: Json) -> None:
    schema, document = {"type": "struct", **update["schema"]}, builder.document
    ids = list(field_ids(schema))
    if len(ids) != len(set(ids)):
        raise ApiError(400, "InvalidTableUpdate", "The schema uses a field id more than once.")
    if fault := find_name_fault(schema, document):
        raise ApiError(400, "InvalidTableUpdate", fault)
    document["last-column-id"] = max([document["last-column-id"], *ids])
    new = _drop_key(schema, "schema-id")
    same = [existing for existing in document["schemas"] if _drop_key(existing, "schema-id") == new]
    if same:
        builder.added["schema"] = same[0]["schema-id"]
        return
    number = max((existing["schema-id"] for existing in document["schemas"]), default=-1) + 1
    document["schemas"].append({**schema, "schema-id": number})
    builder.added["schema"] = number


def _set_current_schema(builder: TableBuilder, update: Json) -> None:
    number = builder.resolve("schema", update["schema-id"])
    builder.find("schemas", "schema-id", number)
    builder.document["current-schema-id"] = number


def _remove_schemas(builder: TableBuilder, update: Json) -> None:
    removed_ids = set(update["schema-ids"])
    if builder.document["current-schema-id"] in removed_ids:
        raise ApiError(400, "InvalidTableUpdate", "Cannot remove the current schema.")
    _remove_entries(builder, "schemas", "schema-id", removed_ids)


def _add_spec(builder: TableBuilder, update: Json) -> None:
    document = builder.document
    existing_ids = {
        _field_key(field): field["field-id"] for spec in document["partition-specs"] for field in spec["fields"]
    }
    numbered = [
        {**field, "field-id": field.get("field-id") or existing_ids.get(_field_key(field))}
        for field in update["spec"]["fields"]
    ]
    if fault := find_spec_fault(numbered, _current_schema(builder)):
        raise ApiError(400, "InvalidTableUpdate", fault)
    fields = _number_fields(numbered, document["last-partition-id"])
    for spec in document["partition-specs"]:
        if [_describe_field(field) for field in spec["fields"]] == [_describe_field(field) for field in fields]:
            builder.added["spec"] = spec["spec-id"]
            return
    ids = [field["field-id"] for field in fields]
    if document["format-version"] == 1 and ids != list(range(FIRST_PARTITION_ID, FIRST_PARTITION_ID + len(ids))):
        message = "Cannot add partition spec with non-sequential field ids to format version 1 table"
        raise ApiError(400, "InvalidTableUpdate", message)
    document["last-partition-id"] = max(document["last-partition-id"], max(ids, default=FIRST_PARTITION_ID - 1))
    number = max((spec["spec-id"] for spec in document["partition-specs"]), default=-1) + 1
    document["partition-specs"].append({"spec-id": number, "fields": fields})
    builder.added["spec"] = number


def _number_fields(fields: list[Json], last: int) -> list[Json]:
    """Return the fields with ids: fields without one get the ids after the last id of the table."""
    taken = {field["field-id"] for field in fields}
    numbered: list[Json] = []
    for field in fields:
        number = field["field-id"]
        if number is None:
            last += 1
            while last in taken:
                last += 1
            number = last
        last = max(last, number)
        numbered.append({**field, "field-id": number})
    return numbered


def _current_schema(builder: TableBuilder) -> Json:
    return builder.find("schemas", "schema-id", builder.document["current-schema-id"])


def _set_default_spec(builder: TableBuilder, update: Json) -> None:
    number = builder.resolve("spec", update["spec-id"])
    builder.find("partition-specs", "spec-id", number)
    builder.document["default-spec-id"] = number


def _remove_specs(builder: TableBuilder, update: Json) -> None:
    removed_ids = set(update["spec-ids"])
    if builder.document["default-spec-id"] in removed_ids:
        raise ApiError(400, "InvalidTableUpdate", "Cannot remove the default partition spec.")
    _remove_entries(builder, "partition-specs", "spec-id", removed_ids)


def _add_sort_order(builder: TableBuilder, update: Json) -> None:
    orders, fields = builder.document["sort-orders"], update["sort-order"]["fields"]
    for order in orders:
        if order["fields"] == fields:
            builder.added["sort order"] = order["order-id"]
            return
    if fault := find_order_fault(fields, _current_schema(builder)):
        message = f"Sort order to add is incompatible with current schema: Unexpected => {fault}"
        raise ApiError(400, "InvalidTableUpdate", message)
    number = max((order["order-id"] for order in orders), default=0) + 1 if fields else 0
    orders.append({"order-id": number, "fields": fields})
    builder.added["sort order"] = number


def _set_default_sort_order(builder: TableBuilder, update: Json) -> None:
    number = builder.resolve("sort order", update["sort-order-id"])
    builder.find("sort-orders", "order-id", number)
    builder.document["default-sort-order-id"] = number


def _set_location(builder: TableBuilder, update: Json) -> None:
    """Refuse another location: clients send the location of a table that they create; no version moves tables."""
    if update["location"] != builder.document["location"]:
        raise ApiError(400, "SetLocationNotAllowed", "Cannot change table location")


def _set_properties(builder: TableBuilder, update: Json) -> None:
    updates = dict(update["updates"])
    check_not_modified(builder.fixed, updates)
    version = updates.pop("format-version", None)
    builder.document["properties"].update(updates)
    if version is not None:
        _upgrade_format_version(builder, {"format-version": int(version)})


def _remove_properties(builder: TableBuilder, update: Json) -> None:
    check_not_removed(builder.fixed, update["removals"])
    for key in update["removals"]:
        builder.document["properties"].pop(key, None)


def _add_encryption_key(builder: TableBuilder, update: Json) -> None:
    builder.document.setdefault("encryption-keys", []).append(update["encryption-key"])


def _remove_encryption_key(builder: TableBuilder, update: Json) -> None:
    builder.document.setdefault("encryption-keys", [])
    _remove_entries(builder, "encryption-keys", "key-id", {update["key-id"]})


def _remove_entries(builder: TableBuilder, collection: str, key: str, removed_ids: set[Any]) -> None:
    builder.document[collection] = [entry for entry in builder.document[collection] if entry[key] not in removed_ids]


def _drop_key(schema: Json, key: str) -> Json:
    return {name: value for name, value in schema.items() if name != key and value != []}


def _field_key(field: Json) -> tuple[Any, ...]:
    return (field.get("source-id"), tuple(field.get("source-ids") or ()), field["transform"])


def _describe_field(field: Json) -> tuple[Any, ...]:
    return (*_field_key(field), field["name"])


UPDATES: dict[str, Callable[[TableBuilder, Json], None]] = {
    "assign-uuid": _assign_uuid,
    "upgrade-format-version": _upgrade_format_version,
    "add-schema": _add_schema,
    "set-current-schema": _set_current_schema,
    "remove-schemas": _remove_schemas,
    "add-spec": _add_spec,
    "set-default-spec": _set_default_spec,
    "remove-partition-specs": _remove_specs,
    "add-sort-order": _add_sort_order,
    "set-default-sort-order": _set_default_sort_order,
    "set-location": _set_location,
    "set-properties": _set_properties,
    "remove-properties": _remove_properties,
    "add-encryption-key": _add_encryption_key,
    "remove-encryption-key": _remove_encryption_key,
    **SNAPSHOT_UPDATES,
}
