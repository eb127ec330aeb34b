"""The platform stack: Lakekeeper on Kubernetes, its gateway and what it needs."""
