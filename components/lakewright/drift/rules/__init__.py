"""What is made of the differences: ignored ones, groups with one cause, and what healing reverts. Pure functions."""
