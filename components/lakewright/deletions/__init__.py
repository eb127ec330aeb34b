"""Deletions of an operation: checks before a destruction starts, and counts of the deleted contents."""
