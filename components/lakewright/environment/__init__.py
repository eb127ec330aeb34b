"""Environments: what tenants share, and the rules for their specs."""
