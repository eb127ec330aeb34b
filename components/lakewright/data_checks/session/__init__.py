"""What all kinds of checks share: results, errors, and access to a tenant's catalog, files and roles."""
