"""Ownership of a stack's objects: marks on servers, consent to an adoption, and the stack that runs.

Nothing here calls a server. Providers and the command line read and write marks with their own clients.
"""
