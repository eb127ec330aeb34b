"""Rules about differences: ignored ones, groups with one cause, and those that healing reverts. Pure functions."""
