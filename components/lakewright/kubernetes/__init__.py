"""What a tenant runs on Kubernetes: computing units, maintenance CronJobs, manifests and network policies."""
