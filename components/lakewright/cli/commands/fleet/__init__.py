"""`lakewright fleet`: operations and reports on many stacks."""
