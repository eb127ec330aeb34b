"""Identities of computing units and jobs at the catalog, their roles, and the members of roles."""
