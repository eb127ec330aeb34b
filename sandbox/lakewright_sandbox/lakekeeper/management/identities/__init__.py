"""Users, roles and role members in the management API."""
