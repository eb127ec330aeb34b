"""The properties of a table as its metadata file has them, where a catalog adds others to its responses.

Nessie adds the id of the branch's last commit, which changes with commits of other tables, and `gc.enabled=false` to
tables that do not set it. A table that another catalog registers has neither.
Source: IcebergApiV1TableResource.loadTable and CatalogServiceImpl.metadataPropertiesTweak of projectnessie/nessie.
"""

from __future__ import annotations

from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table

NESSIE_COMMIT = "nessie.commit.id"
"""Property that Nessie adds to each table, and that clients cannot set."""


def restore_stored_properties(table: Table) -> Table:
    """Give a table of Nessie the properties of its metadata file, and return it. Other tables remain as they are."""
    if NESSIE_COMMIT in table.properties:
        stored = FromInputFile.table_metadata(table.io.new_input(table.metadata_location))
        table.metadata = table.metadata.model_copy(update={"properties": stored.properties})
    return table
