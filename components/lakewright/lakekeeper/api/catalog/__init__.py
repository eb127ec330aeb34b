"""Calls about namespaces, tables and views."""
