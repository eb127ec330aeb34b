"""Storages that keep the files and locks of a backend: a folder or an S3 bucket."""
