"""Restrictions of the warehouses of stacks: archived warehouses, and limits that are enforced."""
