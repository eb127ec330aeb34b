"""Lists of the objects on servers and in states."""
