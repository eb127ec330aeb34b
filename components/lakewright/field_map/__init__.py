"""The map between fields of the spec and properties of resources: declared once, used in both directions."""
