"""The `kubernetes` provider: renders manifests into a directory, as the real one does with `renderYamlToDirectory`."""
