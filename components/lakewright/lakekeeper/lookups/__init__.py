"""Lookups: functions that read from a server."""
