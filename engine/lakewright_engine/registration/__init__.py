"""Requests of a program to register resources: desired state, aliases, transforms and hooks."""
