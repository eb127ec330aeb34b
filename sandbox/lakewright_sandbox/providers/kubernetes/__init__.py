"""The `kubernetes` provider: renders manifests into a directory, or applies them to the sandbox's cluster."""
