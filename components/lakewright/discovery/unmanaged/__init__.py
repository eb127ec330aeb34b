"""Objects in the scope of tenants that are in no stack, for drift."""
