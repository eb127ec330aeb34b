"""Maintenance of tables: one job a file, each with a dry run, metrics, and a floor that protects data."""
