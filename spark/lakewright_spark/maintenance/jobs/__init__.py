"""Maintenance jobs, one per file. `maintenance.registry` lists them in run order."""
