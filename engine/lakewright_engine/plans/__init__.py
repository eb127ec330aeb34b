"""Kept plans: record the steps of a preview in a file, and hold a later update to exactly these steps."""
