"""Time limits of catalog clients in seconds."""

CONNECT = 10.0
"""Time to connect."""
SOCKET = 60.0
"""Time between two reads of a response."""
