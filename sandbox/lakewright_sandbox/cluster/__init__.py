"""A stand-in for a Kubernetes API server: keeps objects, and tracks who owns which field of them."""
