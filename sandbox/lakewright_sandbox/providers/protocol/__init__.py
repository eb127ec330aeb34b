"""Pulumi's provider protocol, independent of the provider: service, properties, differences, errors."""
