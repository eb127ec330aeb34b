"""Evaluate the `checks` of tenants: assertions about tables, warehouses and rights, without Spark."""
