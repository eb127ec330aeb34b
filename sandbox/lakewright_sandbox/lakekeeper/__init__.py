"""A Lakekeeper-compatible server: management and Iceberg REST catalog, on a SQL database and S3."""
