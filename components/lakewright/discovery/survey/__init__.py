"""Coverage: the share of the existing objects that stacks manage."""
