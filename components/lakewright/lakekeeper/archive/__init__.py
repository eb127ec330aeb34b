"""Archived warehouses: read-only, recorded on the server, and purged by `lakewright expire` after an announcement."""
