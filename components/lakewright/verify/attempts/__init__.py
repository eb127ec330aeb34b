"""Attempts and their results: the requests that probes send, and how responses are judged."""
