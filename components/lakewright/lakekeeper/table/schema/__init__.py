"""Columns, layout and properties of tables, as declared and in Iceberg's JSON."""
