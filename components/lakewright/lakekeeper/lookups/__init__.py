"""Look-ups: functions that read from a server."""
