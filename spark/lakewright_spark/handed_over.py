"""HandedOverTable: a table that a migration in place gave to another catalog, as an object under its location records.

The files of such a table lie under the key prefix of the source's warehouse and belong to the target's catalog. The
object is with the files, so every program that deletes a key prefix can read it. Its name is hidden from Iceberg's
search for orphan files. A catalog that deletes the table's folder deletes the object, too.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any, cast

FOLDER = "_lakewright/handed-over"
"""Folder under a table's location."""
VERSION = 1
"""Version of the object's document."""
PATTERN = rf"(?:^|/){FOLDER}/[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}\.json$"
"""Regular expression for a key or an address of such an object, in Python and in Java."""
_KEY = re.compile(PATTERN)


@dataclass(frozen=True)
class HandedOverTable:
    """A table and the catalog that owns its files."""

    table: str
    """Name of the table in the new catalog, with its namespace."""
    warehouse: str
    """Name of the new warehouse."""
    catalog: str
    """Address of the new catalog."""
    warehouse_id: str | None
    """Id of the new warehouse in Lakekeeper; None for other catalogs."""
    migration: str
    """Id of the migration, as in its ledger."""

    def to_document(self) -> bytes:
        """Return the content of the object."""
        return json.dumps({"version": VERSION, **asdict(self)}, indent=2).encode()


def build_address(location: str, table_uuid: str) -> str:
    """Return the address of the object of a table.

    >>> build_address("s3://lake/a/", "019d0000-0000-7000-8000-000000000000")
    's3://lake/a/_lakewright/handed-over/019d0000-0000-7000-8000-000000000000.json'
    """
    return f"{location.rstrip('/')}/{FOLDER}/{table_uuid}.json"


def is_key(key: str) -> bool:
    """Return whether a key or an address is that of such an object.

    >>> is_key("a/_lakewright/handed-over/019d0000-0000-7000-8000-000000000000.json")
    True
    >>> is_key("a/data/part-0.parquet")
    False
    """
    return _KEY.search(key) is not None


def find_uuid(key: str) -> str | None:
    """Return the UUID of the table that a key or an address is about; None for other keys.

    >>> find_uuid("a/_lakewright/handed-over/019D0000-0000-7000-8000-000000000000.json")
    '019d0000-0000-7000-8000-000000000000'
    """
    return key.rpartition("/")[2].removesuffix(".json").lower() if is_key(key) else None


def parse_document(content: bytes) -> HandedOverTable | None:
    """Return the table that an object records; None if the object cannot be read, so that its owner is not known."""
    try:
        document = json.loads(content)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    values = cast(dict[str, Any], document)
    texts = ("table", "warehouse", "catalog", "migration")
    warehouse_id = values.get("warehouse_id")
    if (
        values.pop("version", None) != VERSION
        or values.keys() != {*texts, "warehouse_id"}
        or not all(isinstance(values[name], str) for name in texts)
        or not (warehouse_id is None or isinstance(warehouse_id, str))
    ):
        return None
    return HandedOverTable(**values)
