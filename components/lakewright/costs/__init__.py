"""Costs of a fleet over time, from the daily usage that maintenance records in `ops.daily_usage`."""
