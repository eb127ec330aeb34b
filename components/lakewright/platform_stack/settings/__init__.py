"""Typed settings of the platform stack, and their checks."""
