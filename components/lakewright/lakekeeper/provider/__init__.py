"""Base of all resource providers, and code that their resources share."""
