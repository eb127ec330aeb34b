"""Checks across the parts of a spec: pure functions over the document as written."""
