"""Grants, permissions and actions in the management API."""
