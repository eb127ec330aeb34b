"""Storage backends: one module each, and their registry."""
