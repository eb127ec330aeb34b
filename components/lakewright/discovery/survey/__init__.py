"""Objects that stacks manage, and those that exist: coverage."""
