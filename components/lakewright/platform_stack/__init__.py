"""The platform stack: Lakekeeper on Kubernetes, its gateway and its dependencies."""
