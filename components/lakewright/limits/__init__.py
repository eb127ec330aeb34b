"""Enforcement of the limits of tenants: measured usage, and the grants that are suspended while a limit is reached."""
