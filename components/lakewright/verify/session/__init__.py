"""What probes share: the tenant, its identities, its warehouses and the cluster."""
