"""Formats of the catalog configuration that `lakewright config` writes: one file each, and their registry."""
