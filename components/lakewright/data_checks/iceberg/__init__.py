"""What Iceberg's metadata says about a table's rows: snapshots, manifest lists and manifests. No data file is read."""
