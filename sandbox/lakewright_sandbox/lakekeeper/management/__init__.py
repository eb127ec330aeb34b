"""The management API, `/management/v1`: one file or folder per kind of object."""
