"""Kubernetes objects of a tenant: computing units, maintenance CronJobs, manifests and network policies."""
