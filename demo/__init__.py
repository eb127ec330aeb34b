"""The demo: create a tenant, run a Spark job in it, then find and repair drift. `make demo` runs it."""
