"""Authenticate callers by bearer tokens: of OpenID providers, and of the ServiceAccounts of a cluster."""
