"""The files of a project as written, read before any model is loaded."""
