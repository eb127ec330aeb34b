"""The database: its tables, sessions, and queries that every part of the server needs."""
