"""Warehouses in the management API."""
