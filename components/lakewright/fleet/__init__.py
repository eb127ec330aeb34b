"""Many stacks at once: which ones, their operations in parallel, and the report by tenant."""
