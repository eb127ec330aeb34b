"""Many stacks at once: their selection, operations in parallel, and the report by tenant."""
