"""An emulated Kubernetes API server: keeps objects, and tracks the owners of their fields."""
