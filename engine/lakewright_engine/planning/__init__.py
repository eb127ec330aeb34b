"""Decide which steps a deployment takes: creations, updates, replacements and deletions."""
