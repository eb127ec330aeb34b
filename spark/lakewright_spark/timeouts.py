"""How long clients wait for a catalog: seconds."""

CONNECT = 10.0
"""To connect."""
SOCKET = 60.0
"""For the next bytes of an answer."""
