"""The base of all resource providers, and what their resources share."""
