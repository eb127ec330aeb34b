"""Directories of people: groups of Keycloak and of Entra, and their members."""
