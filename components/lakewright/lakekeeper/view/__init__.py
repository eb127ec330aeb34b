"""The View resource."""
