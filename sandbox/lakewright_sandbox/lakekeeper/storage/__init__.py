"""Storage of warehouses: profiles, credentials, access to objects, vended credentials, validation."""
