"""Field ids of a new table: the server assigns them level by level, as Iceberg's libraries do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lakewright_sandbox.lakekeeper.protocol.errors import ApiError, RequestRejectedError
from lakewright_sandbox.typed.json_values import is_array, is_object

Json = dict[str, Any]

UNREADABLE = "Failed to deserialize the JSON body into the target type"


class FreshIds:
    """Copy a schema with ids from 1 on, and map old ids to new ids."""

    def __init__(self) -> None:
        """Start at id 1."""
        self.last = 0
        self.new_ids: dict[int, int] = {}

    def schema(self, schema: Json) -> Json:
        """Return the schema with new ids."""
        fresh: Json = {"schema-id": 0, **self._struct(schema)}
        if identifiers := schema.get("identifier-field-ids"):
            fresh["identifier-field-ids"] = [self.source(identifier) for identifier in identifiers]
        return fresh

    def source(self, field_id: int) -> int:
        """Return the new id of a field that a partition spec or sort order names."""
        if field_id not in self.new_ids:
            raise ApiError(400, "InvalidTableConfig", f"No field with id {field_id} in the table's schema.")
        return self.new_ids[field_id]

    def _next(self, old: int) -> int:
        self.last += 1
        self.new_ids[old] = self.last
        return self.last

    def _struct(self, struct: Json) -> Json:
        fields = struct["fields"]
        numbers = [self._next(field["id"]) for field in fields]
        fresh = [
            field | {"id": number, "type": self._type(field["type"])}
            for field, number in zip(fields, numbers, strict=True)
        ]
        return {"type": "struct", "fields": fresh}

    def _type(self, kind: Any) -> Any:
        if not is_object(kind):
            return kind
        if kind["type"] == "struct":
            return self._struct(kind)
        if kind["type"] == "list":
            number = self._next(kind["element-id"])
            return kind | {"element-id": number, "element": self._type(kind["element"])}
        numbers = {"key-id": self._next(kind["key-id"]), "value-id": self._next(kind["value-id"])}
        return kind | numbers | {"key": self._type(kind["key"]), "value": self._type(kind["value"])}


def check_schema(schema: Json) -> None:
    """Raise 422 in plain text if a document is not a schema. Types are not checked."""
    try:
        ids: list[object] | None = list(field_ids(schema)) if is_array(schema["fields"]) else None
        has_names = all(isinstance(field["name"], str) for field in schema["fields"])
    except (KeyError, TypeError) as fault:
        missing = f"missing field {str(fault)!r}" if isinstance(fault, KeyError) else "invalid type"
        raise RequestRejectedError(422, f"{UNREADABLE}: schema: {missing}") from None
    if ids is None or not has_names or not all(isinstance(field_id, int) for field_id in ids):
        raise RequestRejectedError(422, f"{UNREADABLE}: schema: invalid type")
    if len(ids) != len(set(ids)):
        raise ApiError(400, "InvalidTableConfig", "The schema uses a field id more than once.")


def field_ids(kind: Any) -> Iterator[int]:
    """Yield every field id in a schema or type."""
    if not is_object(kind):
        return
    for field in kind.get("fields", []):
        yield field["id"]
        yield from field_ids(field["type"])
    for part in ("element", "key", "value"):
        if part in kind:
            yield kind[f"{part}-id"]
            yield from field_ids(kind[part])
