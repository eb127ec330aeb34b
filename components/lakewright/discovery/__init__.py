"""What is on servers and in no stack: specs from existing tenants, coverage, and unmanaged objects."""
