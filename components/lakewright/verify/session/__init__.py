"""Context of the probes: the tenant, its identities, its warehouses and the cluster."""
