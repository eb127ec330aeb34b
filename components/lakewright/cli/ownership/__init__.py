"""Ownership of tenants across stacks: files and states of other stacks, marks on servers, and consents."""
