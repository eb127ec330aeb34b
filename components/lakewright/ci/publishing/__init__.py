"""A drift report in a cluster's monitoring: Prometheus gauges, and Kubernetes Events."""
