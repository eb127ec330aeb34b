"""The usage report: bytes, files, snapshots and growth of a tenant's tables, from Iceberg's metadata without Spark."""
