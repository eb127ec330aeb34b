"""Compare dynamic resources with their objects, with the code of their providers and without an engine."""
