"""Types and rules of names: tenants, warehouses, tables, buckets, key prefixes, hosts and objects on Kubernetes."""
