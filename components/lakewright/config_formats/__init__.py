"""Formats of the catalog configuration that `lakewright config` writes: a file for each format, and their registry."""
