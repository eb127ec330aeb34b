"""Load tables to read their metadata, also tables whose columns have types that PyIceberg does not know.

PyIceberg 0.12 refuses the whole metadata of a table with a `variant` column.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import pydantic
from pyiceberg import exceptions as iceberg
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.catalog.rest import Endpoints, RestCatalog, TableResponse
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.serializers import Compressor
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.typedef import Identifier
from pyiceberg.types import NestedField
from requests import HTTPError
from sqlalchemy import select
from sqlalchemy.orm import Session

UNKNOWN = "unknown"
"""Type that stands for a type which PyIceberg does not know. All values of such a column are null in Iceberg."""


def load_metadata(catalog: Catalog, identifier: Identifier) -> Table:
    """Return a table for reading its metadata. Columns of unknown types have the type `unknown`.

    A table with such columns cannot be changed: its `catalog` raises NotImplementedError. Errors of
    `catalog.load_table` are raised.
    """
    try:
        return catalog.load_table(identifier)
    except (pydantic.ValidationError, iceberg.ValidationError):
        table = _load_readable_table(catalog, identifier)
        if table is None:
            raise
        table.catalog = NoopCatalog(catalog.name)
        return table


def is_readable_only(table: Table) -> bool:
    """Return whether PyIceberg can read the table's metadata but not change the table."""
    return type(table.catalog) is NoopCatalog


def replace_unknown_types(metadata: dict[str, Any]) -> list[str]:
    """Replace the types that PyIceberg does not know in a table's metadata, and return the columns' names."""
    names: list[str] = []
    for schema in [*metadata.get("schemas", []), *([metadata["schema"]] if "schema" in metadata else [])]:
        _replace_in_struct(schema, names)
    return list(dict.fromkeys(names))


def _replace_in_struct(struct: dict[str, Any], names: list[str]) -> None:
    for field in struct.get("fields", []):
        if _replace_type(field, "type", names):
            names.append(field["name"])
            field["required"] = False
            for default in ("initial-default", "write-default"):
                field.pop(default, None)


def _replace_type(holder: dict[str, Any], key: str, names: list[str]) -> bool:
    """Replace the type under a key if it is unknown, else the types within it. Return whether it was replaced."""
    kind = holder[key]
    if isinstance(kind, Mapping):
        nested = cast(dict[str, Any], kind)
        _replace_in_struct(nested, names)
        for part in ("element", "value"):
            if part in nested and _replace_type(nested, part, names):
                names.append(part)
                nested[f"{part}-required"] = False
        return False
    try:
        NestedField.model_validate({"id": 1, "name": "column", "type": kind, "required": False})
    except pydantic.ValidationError:
        holder[key] = UNKNOWN
        return True
    return False


def _load_readable_table(catalog: Catalog, identifier: Identifier) -> Table | None:
    """Return the table with its unknown types replaced; None if they are not what PyIceberg refuses."""
    if isinstance(catalog, RestCatalog):
        return _load_from_rest(catalog, identifier)
    return _load_from_database(catalog, identifier) if isinstance(catalog, SqlCatalog) else None


def _load_from_rest(catalog: RestCatalog, identifier: Identifier) -> Table | None:
    parts = catalog._split_identifier_for_path(identifier)  # pyright: ignore[reportPrivateUsage]  # as in `load_table`
    response = catalog._session.get(catalog.url(Endpoints.load_table, prefixed=True, **parts))  # pyright: ignore[reportPrivateUsage]
    try:
        response.raise_for_status()
    except HTTPError as error:
        if response.status_code == 404:
            raise iceberg.NoSuchTableError(f"table {'.'.join(identifier)} was dropped in the meantime") from error
        raise
    document = response.json()
    if not replace_unknown_types(document["metadata"]):
        return None
    return catalog._response_to_table(identifier, TableResponse.model_validate(document))  # pyright: ignore[reportPrivateUsage]


def _load_from_database(catalog: SqlCatalog, identifier: Identifier) -> Table | None:
    *namespace, name = identifier
    row = select(IcebergTables.metadata_location).where(
        IcebergTables.catalog_name == catalog.name,
        IcebergTables.table_namespace == ".".join(namespace),
        IcebergTables.table_name == name,
    )
    with Session(catalog.engine) as session:
        location = session.scalar(row)
    if location is None:
        raise iceberg.NoSuchTableError(f"table {'.'.join(identifier)} was dropped in the meantime")
    file = catalog._load_file_io(location=location).new_input(location)  # pyright: ignore[reportPrivateUsage]
    with file.open() as stream, Compressor.get_compressor(location).stream_decompressor(stream) as text:
        try:
            document = json.loads(text.read())
        except ValueError:
            return None
    if not replace_unknown_types(document):
        return None
    metadata = TableMetadataUtil.parse_obj(document)
    io = catalog._load_file_io(metadata.properties, location)  # pyright: ignore[reportPrivateUsage]
    return Table(identifier, metadata, location, io, catalog)
