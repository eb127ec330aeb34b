"""Execution results in Iceberg tables, under the names and with the columns that Apache Texera uses."""
