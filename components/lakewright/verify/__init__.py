"""Proof of a tenant's isolation from outside: probes that use the identity of its computing units."""
