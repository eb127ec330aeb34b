"""AWS resources of a tenant: buckets, access roles, and objects that exist already."""
