"""Lakewright on Spark: the catalog configuration, sessions, execution results and table maintenance."""
