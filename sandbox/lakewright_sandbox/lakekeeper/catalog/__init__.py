"""The Iceberg REST catalog, `/catalog/v1`, and `/lakekeeper/v1` beside it: one file per kind of object."""
