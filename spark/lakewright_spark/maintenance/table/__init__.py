"""What maintenance jobs read and change of one table: Iceberg's Java library, metadata, files and `ops` tables."""
