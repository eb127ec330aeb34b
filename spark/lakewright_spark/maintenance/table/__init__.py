"""Access of maintenance jobs to a table: Iceberg's Java library, metadata, files and `ops` tables."""
