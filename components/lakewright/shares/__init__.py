"""Shares: grants, memberships, roles of consumers and permissions to adopt, and their ends."""
