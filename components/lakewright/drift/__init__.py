"""Drift: differences between the states of stacks and the objects on the servers. No program runs."""
