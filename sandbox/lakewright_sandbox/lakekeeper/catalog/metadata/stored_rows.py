"""The tables of Lakekeeper's database: what they keep of a commit that it accepted, and references that they refuse.

Source: `calculate_diffs` and `insert_snapshot_refs` of Lakekeeper 0.13.3, and its migrations.
"""

from __future__ import annotations

from typing import Any

from lakewright_sandbox.lakekeeper.catalog.metadata.document_rules import MAIN
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError

Json = dict[str, Any]

STATISTICS = {"statistics": "table_statistics", "partition-statistics": "partition_statistics"}
"""Collections of a metadata document, and their tables in the database."""


def check_references(document: Json, earlier: Json | None = None) -> None:
    """Raise 503 for a new snapshot without its schema, or a new statistics file without its snapshot.

    Args:
        document: The new metadata.
        earlier: The metadata before the commit; None for a new table.
    """
    earlier = earlier or {}
    schemas = _ids(document, "schemas", "schema-id") | _ids(earlier, "schemas", "schema-id")
    earlier_snapshots = _ids(earlier, "snapshots")
    for snapshot in document.get("snapshots", []):
        is_new = snapshot["snapshot-id"] not in earlier_snapshots
        if is_new and snapshot.get("schema-id") not in {None, *schemas}:
            raise _violation("table_snapshot", "table_snapshot_table_id_schema_id_fkey")
    snapshots = _ids(document, "snapshots") | earlier_snapshots
    for collection, table in STATISTICS.items():
        if _ids(document, collection) - _ids(earlier, collection) - snapshots:
            raise _violation(table, f"{table}_table_id_snapshot_id_fkey")


def keep_stored(document: Json, earlier: Json) -> None:
    """Undo the changes of a commit that the database does not store.

    It keeps the branches and tags if the commit leaves none, and the statistics file of a snapshot that has one. With a
    snapshot it deletes the snapshot's statistics, branches and tags.
    """
    snapshots = _ids(document, "snapshots")
    for collection in STATISTICS:
        stored = {file["snapshot-id"]: file for file in earlier.get(collection, [])}
        files = [stored.get(file["snapshot-id"], file) for file in document[collection]]
        document[collection] = [file for file in files if file["snapshot-id"] in snapshots]
    if not document["refs"]:
        refs = earlier.get("refs", {})
        document["refs"] = {name: ref for name, ref in refs.items() if ref["snapshot-id"] in snapshots}
    if MAIN in document["refs"]:
        document["current-snapshot-id"] = document["refs"][MAIN]["snapshot-id"]


def _ids(document: Json, collection: str, key: str = "snapshot-id") -> set[int]:
    return {entry[key] for entry in document.get(collection, [])}


def _violation(table: str, constraint: str) -> ApiError:
    return ApiError(
        503,
        "CatalogBackendError",
        "Catalog backend error (Unexpected): error returned from database: insert or update on table "
        f'"{table}" violates foreign key constraint "{constraint}"',
    )
