"""How fast is it? `make bench` runs all of it in a sandbox of its own."""
