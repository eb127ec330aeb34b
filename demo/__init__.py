"""The demo: one tenant from nothing to a Spark result, then drift, found and healed. `make demo` runs it."""
