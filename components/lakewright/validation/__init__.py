"""Parsing and validation of user files: YAML, strict models and the list of problems."""
