"""A plain client for Lakekeeper, without Pulumi: one file per kind of object, functions that take a `Client`."""
