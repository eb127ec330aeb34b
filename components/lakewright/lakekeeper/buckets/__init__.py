"""Buckets that a stack created: their contents, emptying and deletion."""
