"""The kinds of checks, one module each. `lakewright.data_checks.registry` lists them."""
