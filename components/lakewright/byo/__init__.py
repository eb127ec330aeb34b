"""External IDs for buckets that tenants bring: reserved in the stack's configuration, or in its state."""
