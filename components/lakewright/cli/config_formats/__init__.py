"""Formats of the catalog configuration for `lakewright config --format`: one file each, and their registry."""
