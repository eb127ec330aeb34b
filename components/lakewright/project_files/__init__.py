"""Files of a project, read before any model is loaded."""

PROJECT_FILES = ("Pulumi.yaml", "Pulumi.yml")
"""Names of a project's file."""
