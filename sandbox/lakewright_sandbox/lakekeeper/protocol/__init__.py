"""Requests, responses, errors and versions of the API, with the server's settings and clock."""
