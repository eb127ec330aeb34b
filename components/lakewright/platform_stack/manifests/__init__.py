"""Manifests of the platform stack. Pure functions."""
