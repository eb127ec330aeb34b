"""Buckets that a stack made: what they hold, and how they are emptied and deleted."""
