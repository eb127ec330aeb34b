"""Client for the Lakekeeper REST API, without Pulumi: one file per kind of object, functions that take a `Client`."""
