"""Objects of servers that no stack has: specs from existing tenants, coverage, and unmanaged objects."""
