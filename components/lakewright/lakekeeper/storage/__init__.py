"""Storage profiles and credentials of warehouses, one module for each kind."""
