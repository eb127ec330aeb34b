"""Calls about projects, warehouses, users, roles and grants."""
