"""Files of a project, read before any model is loaded."""
