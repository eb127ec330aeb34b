"""Rules about differences: ignored differences, and groups with one cause. Pure functions."""
