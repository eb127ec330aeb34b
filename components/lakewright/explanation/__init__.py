"""Explain specs: what a field means, and which value each field of a stack has and why."""
