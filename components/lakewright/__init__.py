"""Tenants as Pulumi stacks: storage, Lakekeeper warehouses and Spark compute."""
