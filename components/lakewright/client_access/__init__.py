"""Requests as a tenant's clients send them to catalog, storage and IAM, and how their responses are judged."""
