"""Columns, layout and properties of tables, as declarations and in Iceberg's JSON."""
