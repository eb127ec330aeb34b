"""Delete files at another location: positions of deleted rows name their data files, so their addresses are replaced.

Equality deletes have no addresses. Iceberg's specification has two formats: position delete files in Parquet,
and deletion vectors in Puffin.
"""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakewright_spark.errors import MigrationError

Move = Callable[[str], str]
"""Returns the new address of a file."""

POSITION_DELETES = 1
"""Value of `content` of a file with positions of deleted rows."""
_PATH_FIELD = 2147483546
"""ID of the column `file_path` of position delete files."""
_MAGIC = b"PFA1"
_FOOTER_END = 12
"""Bytes after the JSON of a Puffin file: its size, flags and magic bytes."""
_REFERENCED = "referenced-data-file"


def relocate_delete_file(file: dict[str, Any], content: bytes, move: Move) -> bytes:
    """Return the content of a file of deleted positions with the new addresses of data files.

    Args:
        file: The field `data_file` of its entry in a manifest.
        content: The content of the file.
        move: Returns the new address of a data file.

    Raises:
        MigrationError: The file has another format than Parquet and Puffin.
    """
    file_format = file["file_format"].upper()
    try:
        if file_format == "PARQUET":
            return _relocate_positions(content, move)
        if file_format == "PUFFIN":
            return _relocate_vectors(file["file_path"], content, move)
    except (ValueError, KeyError) as error:  # such as an encrypted file
        raise MigrationError(f"{file['file_path']} cannot be read: {error}") from error
    raise MigrationError(
        f"{file['file_path']}: expected positions of deleted rows in Parquet or Puffin, found {file_format}; compact "
        "the table and expire its old snapshots first"
    )


def relocate_entry(file: dict[str, Any], size: int, move: Move) -> None:
    """Replace addresses of data files and the size in the manifest's entry of a file of deleted positions."""
    file["file_size_in_bytes"] = size
    if file.get("referenced_data_file"):
        file["referenced_data_file"] = move(file["referenced_data_file"])
    if file["file_format"].upper() == "PARQUET":
        file["split_offsets"] = None  # row groups have other offsets
    for name in ("lower_bounds", "upper_bounds"):
        bounds = file.get(name)
        if bounds is not None:
            file[name] = [new for bound in bounds if (new := _relocate_bound(bound, move)) is not None]


def _relocate_bound(bound: dict[str, Any], move: Move) -> dict[str, Any] | None:
    """Return the bound of a column; None for a bound of addresses that is cut off. Bounds are optional."""
    if bound["key"] != _PATH_FIELD:
        return bound
    try:
        return {**bound, "value": move(bytes(bound["value"]).decode()).encode()}
    except (MigrationError, ValueError):
        return None


def _relocate_positions(content: bytes, move: Move) -> bytes:
    table = pq.read_table(io.BytesIO(content))
    paths = table.column("file_path")
    moved_paths = pa.array(map(functools.cache(move), paths.to_pylist()), paths.type)
    index = table.schema.names.index("file_path")
    output = io.BytesIO()
    pq.write_table(table.set_column(index, table.schema.field(index), moved_paths), output, compression="zstd")
    return output.getvalue()


def _relocate_vectors(path: str, content: bytes, move: Move) -> bytes:
    """Return the content with another footer. The vectors remain at their offsets."""
    size, flags = (int.from_bytes(content[start : start + 4], "little") for start in (-_FOOTER_END, -8))
    start = len(content) - _FOOTER_END - size
    if content[-4:] != _MAGIC or content[start - 4 : start] != _MAGIC or flags & 1:
        raise MigrationError(f"{path}: expected a Puffin file whose footer is not compressed, found another file")
    footer = json.loads(content[start : start + size])
    for blob in footer["blobs"]:
        properties = blob.get("properties", {})
        if _REFERENCED in properties:
            properties[_REFERENCED] = move(properties[_REFERENCED])
    new_footer = json.dumps(footer, separators=(",", ":")).encode()
    return content[:start] + new_footer + len(new_footer).to_bytes(4, "little") + content[-8:]
