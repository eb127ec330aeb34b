"""What a tenant's tables amount to: bytes, files, snapshots and growth, read from Iceberg's metadata without Spark."""
