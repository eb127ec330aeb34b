"""Jobs: each takes a catalog configuration and nothing else of the platform."""
